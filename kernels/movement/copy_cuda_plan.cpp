#include "kernels/movement/copy_cuda_plan.h"

#include <algorithm>

namespace ds::kernels::cuda {

namespace {

std::vector<CopyDimension> merged(const std::vector<CopyDimension> &dimensions) {
  std::vector<CopyDimension> result;
  for (const CopyDimension &dimension : dimensions) {
    if (dimension.size == 1)
      continue;
    const bool follows = !result.empty() && result.back().from == dimension.from * dimension.size &&
                         result.back().to == dimension.to * dimension.size;
    if (follows)
      result.back() = {result.back().size * dimension.size, dimension.from, dimension.to};
    else
      result.push_back(dimension);
  }
  return result;
}

CopySpace spaceOf(const std::vector<CopyDimension> &dimensions, int64_t elementBytes) {
  CopySpace space;
  space.dimensions = int(dimensions.size());
  std::copy(dimensions.begin(), dimensions.end(), space.dimension);
  for (const CopyDimension &dimension : dimensions)
    space.elements *= dimension.size;
  space.elementBytes = elementBytes;
  return space;
}

} // namespace

CopyPlan::CopyPlan(std::vector<CopyDimension> dimensions, int64_t elementBytes, int64_t fromOffset, int64_t toOffset)
    : fromOffset(fromOffset), toOffset(toOffset) {
  empty = std::any_of(dimensions.begin(), dimensions.end(), [](const CopyDimension &d) { return d.size == 0; });
  if (empty)
    return;
  plain = wide = spaceOf(merged(dimensions), elementBytes);
  findSquares();
  if (!turns)
    widen();
}

/// Doubles the element as long as whole ones move together, up to 16 bytes.
void CopyPlan::widen() {
  const auto inner = [&]() -> CopyDimension & { return wide.dimension[wide.dimensions - 1]; };
  if (wide.dimensions == 0 || inner().from != 1 || inner().to != 1)
    return;
  const auto even = [&] {
    for (int d = 0; d + 1 < wide.dimensions; ++d)
      if (wide.dimension[d].from % 2 != 0 || wide.dimension[d].to % 2 != 0)
        return false;
    return inner().size % 2 == 0 && fromOffset % (2 * wide.elementBytes) == 0 &&
           toOffset % (2 * wide.elementBytes) == 0;
  };
  while (wide.elementBytes < 16 && even()) {
    for (int d = 0; d + 1 < wide.dimensions; ++d) {
      wide.dimension[d].from /= 2;
      wide.dimension[d].to /= 2;
    }
    inner().size /= 2;
    wide.elements /= 2;
    wide.elementBytes *= 2;
  }
}

void CopyPlan::findSquares() {
  if (plain.dimensions < 2)
    return;
  const CopyDimension inner = plain.dimension[plain.dimensions - 1];
  if (inner.to != 1 || inner.from == 1 || inner.size < 8)
    return;
  for (int d = 0; d + 1 < plain.dimensions; ++d) {
    if (plain.dimension[d].from != 1 || plain.dimension[d].size < 8)
      continue;
    turns = true;
    across = plain.dimension[d];
    along = inner;
    std::vector<CopyDimension> around;
    for (int other = 0; other + 1 < plain.dimensions; ++other)
      if (other != d)
        around.push_back(plain.dimension[other]);
    plain = spaceOf(around, plain.elementBytes);
    return;
  }
}

CopyPlan transposePlan(const TransposeCall &call) {
  const auto from = rowMajorStrides(call.x), to = rowMajorStrides(call.y);
  std::vector<CopyDimension> dimensions;
  for (size_t d = 0; d < call.y.size(); ++d)
    dimensions.push_back({call.y[d], from[size_t(call.perm[d])], to[d]});
  return {std::move(dimensions), call.elementBytes, 0, 0};
}

CopyPlan slicePlan(const SliceCall &call) {
  const auto from = rowMajorStrides(call.x), to = rowMajorStrides(call.y);
  std::vector<CopyDimension> dimensions;
  int64_t offset = 0;
  const bool any = elementCount(call.y) > 0;
  for (size_t d = 0; d < call.y.size(); ++d) { // a step that is never taken may be any number
    dimensions.push_back({call.y[d], call.y[d] > 1 ? from[d] * call.steps[d] : from[d], to[d]});
    offset += any ? call.starts[d] * from[d] * call.elementBytes : 0;
  }
  return {std::move(dimensions), call.elementBytes, offset, 0};
}

CopyPlan padPlan(const PadCall &call) {
  const auto from = rowMajorStrides(call.x), to = rowMajorStrides(call.y);
  std::vector<CopyDimension> dimensions;
  int64_t offset = 0;
  const bool any = elementCount(call.x) > 0;
  for (size_t d = 0; d < call.x.size(); ++d) { // a spacing that is never used may be any number
    dimensions.push_back({call.x[d], from[d], call.x[d] > 1 ? to[d] * call.spacing[d] : to[d]});
    offset += any ? call.low[d] * to[d] * call.elementBytes : 0;
  }
  return {std::move(dimensions), call.elementBytes, 0, offset};
}

CopyPlan concatPlan(const ConcatCall &call, size_t k) {
  int64_t offset = 0;
  for (size_t i = 0; i < k; ++i)
    offset += call.inner[i];
  return {{{call.outer, call.inner[k], call.innerTotal}, {call.inner[k], 1, 1}}, 1, 0, offset};
}

} // namespace ds::kernels::cuda
