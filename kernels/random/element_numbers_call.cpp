#include "kernels/random/element_numbers_call.h"

namespace ds::kernels {

ElementNumbers::ElementNumbers(const Call &call, const Shape &part) {
  const Shape whole = call.has("whole") ? call.integers("whole") : part;
  const Shape first = call.has("first") ? call.integers("first") : Shape(part.size());
  bool fits = whole.size() == part.size() && first.size() == part.size() && checkedElementCount(whole).has_value();
  for (size_t d = 0; fits && d < part.size(); ++d)
    fits = first[d] >= 0 && whole[d] >= part[d] && first[d] <= whole[d] - part[d];
  call.require(fits, "a part " + toString(part) + " from " + toString(first) + " on does not lie in a whole " +
                         toString(whole));
  if (elementCount(part) == 0)
    return;
  const auto wholeStrides = rowMajorStrides(whole);
  size_t inner = part.size();
  while (inner > 0) {
    run *= part[--inner];
    if (part[inner] != whole[inner])
      break;
  }
  outer = int(inner);
  for (size_t d = 0; d < part.size(); ++d) {
    offset += first[d] * wholeStrides[d];
    sizes[d] = part[d];
    strides[d] = wholeStrides[d];
  }
}

} // namespace ds::kernels
