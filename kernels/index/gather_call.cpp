#include "kernels/index/gather_call.h"

namespace ds::kernels {

GatherCall::GatherCall(const Call &call, std::string_view dataOperand, std::string_view takenOperand) {
  const Shape &shape = call.shape(dataOperand), &indices = call.shape("indices");
  const size_t axis = call.axis(shape);
  Shape expected(shape.begin(), shape.begin() + int64_t(axis));
  expected.insert(expected.end(), indices.begin(), indices.end());
  expected.insert(expected.end(), shape.begin() + int64_t(axis) + 1, shape.end());
  call.expectShape(takenOperand, expected);
  data = viewAlong(shape, axis);
  count = call.elements("indices");
  indexType = call.dtype("indices");
  const Shape table = call.has("whole") ? call.integers("whole") : Shape{data.length};
  const Shape begin = call.has("first") ? call.integers("first") : Shape{0};
  call.require(table.size() == 1 && begin.size() == 1, "attributes 'whole' and 'first' have one entry, for the axis");
  whole = table[0];
  first = begin[0];
  call.require(first >= 0 && whole >= data.length && first <= whole - data.length,
               std::to_string(data.length) + " rows from " + std::to_string(first) + " on do not lie in a table of " +
                   std::to_string(whole));
}

Status GatherCall::check(const char *kernel, const void *indices) const noexcept {
  for (int64_t k = 0; k < count; ++k) {
    const int64_t index = indexAt(indices, indexType, k);
    if (index < -whole || index >= whole)
      return Status::failure("kernel '%s': index %lld at position %lld is out of range [%lld, %lld)", kernel,
                             static_cast<long long>(index), static_cast<long long>(k), static_cast<long long>(-whole),
                             static_cast<long long>(whole));
  }
  return Status::success();
}

} // namespace ds::kernels
