//===- Part.cpp - what a rank of axis tensor has of a value -----------------===//
#include "compiler/passes/tensor/Part.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"

using namespace llvm;
using namespace ds;

SmallVector<int64_t> ds::partShape(ArrayRef<int64_t> shape, const Part &part, int64_t ranks) {
  SmallVector<int64_t> result(shape);
  if (part.isCut())
    result[size_t(part.dim)] /= ranks;
  return result;
}

static int64_t product(ArrayRef<int64_t> sizes) { return product_of(sizes, int64_t(1)); }

std::optional<Part> ds::reshaped(const Part &part, ArrayRef<int64_t> from, ArrayRef<int64_t> to, int64_t ranks) {
  if (!part.isCut() || from == to)
    return part;
  // Laid flat: `outer` runs, each of `ranks` parts of `inner` elements.
  const int64_t outer = product(from.take_front(size_t(part.dim))) * part.runs;
  const int64_t inner = product(from) / (outer * ranks);
  int64_t before = 1;
  for (size_t d = 0; d < to.size() && outer % before == 0; before *= to[d++]) {
    const int64_t runs = outer / before;
    if (to[d] % (runs * ranks) == 0 && to[d] / (runs * ranks) * product(to.drop_front(d + 1)) == inner)
      return Part::cut(int64_t(d), runs);
  }
  return std::nullopt;
}

std::optional<FactorCut> ds::factorOf(const kernels::FactorMap &map, const kernels::Dimensions &dimensions,
                                      const Part &part, int64_t ranks) {
  int64_t before = 1;
  for (size_t factor : dimensions[size_t(part.dim)]) {
    const int64_t size = map.factors[factor].size;
    if (part.runs % before == 0 && size % (part.runs / before * ranks) == 0)
      return FactorCut{factor, part.runs / before};
    before *= size;
  }
  return std::nullopt;
}

std::optional<Part> ds::partAlong(const kernels::FactorMap &map, const kernels::Dimensions &dimensions, FactorCut cut) {
  Part part;
  for (auto [d, dimension] : enumerate(dimensions)) {
    int64_t before = 1;
    for (size_t factor : dimension) {
      if (factor == cut.factor) {
        if (part.isCut())
          return std::nullopt;
        part = Part::cut(int64_t(d), before * cut.runs);
      }
      before *= map.factors[factor].size;
    }
  }
  return part;
}
