#include "kernels/conv/conv_cuda_plan.h"

#include <algorithm>

namespace ds::kernels::cuda {

namespace {

ConvTensor tensorOf(int64_t outer, int64_t channels, const Extents &extents, size_t spatial, DType dtype) {
  ConvTensor tensor{{outer, channels}, {}, dtype};
  tensor.dims.insert(tensor.dims.end(), extents.end() - long(spatial), extents.end());
  tensor.strides.resize(tensor.dims.size());
  int64_t stride = 1;
  for (size_t d = tensor.dims.size(); d-- > 0;) {
    tensor.strides[d] = stride;
    stride *= tensor.dims[d];
  }
  return tensor;
}

/// As much as before x where that gives y its size, since most engines of cuDNN know one padding for both sides. Else
/// what the last window reads behind x; where it ends before x does, nothing.
int64_t paddingBehind(const Window &window, size_t d) {
  const int64_t end = window.position(d, window.output[d] - 1, window.window[d] - 1) + 1, room = window.input[d] - end;
  const int64_t left = room + window.low[d]; // of x and of as much padding, behind the last window
  return left >= 0 && left < window.strides[d] ? window.low[d] : std::max<int64_t>(-room, 0);
}

} // namespace

ConvPlan::ConvPlan(ConvKind kind, const ConvCall &call, DType ofWeights) : kind(kind) {
  const Window &window = call.window;
  const bool threeDimensional = window.input[0] != 1 || window.window[0] != 1 || window.output[0] != 1;
  const size_t spatial = threeDimensional ? 3 : 2;
  x = tensorOf(call.samples, call.groups * call.channels, window.input, spatial, call.dtype);
  w = tensorOf(call.groups * call.filters, call.channels, window.window, spatial, ofWeights);
  y = tensorOf(call.samples, call.groups * call.filters, window.output, spatial, call.dtype);
  for (size_t d = 3 - spatial; d < 3; ++d) {
    strides.push_back(window.strides[d]);
    dilations.push_back(window.dilations[d]);
    before.push_back(window.low[d]);
    after.push_back(paddingBehind(window, d));
  }
  for (const ConvTensor *tensor : {&x, &w, &y})
    empty = empty || elementCount(tensor->dims) == 0;
}

} // namespace ds::kernels::cuda
