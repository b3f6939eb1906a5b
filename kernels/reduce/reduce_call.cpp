#include "kernels/reduce/reduce_call.h"

namespace ds::kernels {

ReduceCall::ReduceCall(const Call &call, Reduction kind) : reduction(kind) {
  dtype = call.dtype();
  x = call.shape("x");
  reduced.assign(x.size(), false);
  for (int64_t axis : call.integers("axes")) {
    const size_t d = normalizedAxis(call, axis, x.size());
    call.require(!reduced[d], "attribute 'axes' names axis " + std::to_string(d) + " twice");
    reduced[d] = true;
  }
  Shape removed, kept;
  outputs = length = 1;
  for (size_t d = 0; d < x.size(); ++d) {
    (reduced[d] ? length : outputs) *= x[d];
    kept.push_back(reduced[d] ? 1 : x[d]);
    if (!reduced[d])
      removed.push_back(x[d]);
  }
  call.require(call.shape("y") == removed || call.shape("y") == kept, "y must have shape " + toString(removed) +
                                                                          " or " + toString(kept) + ", not " +
                                                                          toString(call.shape("y")));
  call.require(kind != Reduction::Max || outputs == 0 || length > 0,
               "the largest of no elements is not defined; x has shape " + toString(x));
}

ReduceDimensions::ReduceDimensions(const ReduceCall &call) {
  const auto strides = rowMajorStrides(call.x);
  for (size_t d = 0; d < call.x.size(); ++d) {
    if (call.x[d] == 1)
      continue;
    std::vector<StridedDimension> &kind = call.reduced[d] ? reduced : kept;
    const bool follows =
        !kind.empty() && innerReduced == call.reduced[d] && kind.back().stride == call.x[d] * strides[d];
    if (follows)
      kind.back() = {kind.back().size * call.x[d], strides[d]};
    else
      kind.push_back({call.x[d], strides[d]});
    innerReduced = call.reduced[d];
  }
}

int64_t countOf(const std::vector<StridedDimension> &dimensions) {
  int64_t count = 1;
  for (const StridedDimension &dimension : dimensions)
    count *= dimension.size;
  return count;
}

int64_t offsetOf(const std::vector<StridedDimension> &dimensions, int64_t index) {
  int64_t offset = 0;
  for (size_t d = dimensions.size(); d-- > 0;) {
    offset += index % dimensions[d].size * dimensions[d].stride;
    index /= dimensions[d].size;
  }
  return offset;
}

Reduction reductionNamed(std::string_view kernel) {
  if (kernel == "reduce_mean")
    return Reduction::Mean;
  return kernel == "reduce_max" ? Reduction::Max : Reduction::Sum;
}

} // namespace ds::kernels
