// scatter_elements: y = data, then each update meets y at its index. A thread takes a column along the axis: no two
// columns meet the same element, and within one the updates come in order.
#include "kernels/index/element_space.h"
#include "kernels/index/indices.cuh"
#include "kernels/index/scatter_elements_call.h"
#include "kernels/movement/strided_copy.cuh"

namespace ds::kernels::cuda {

namespace {

template <typename T>
__global__ void __launch_bounds__(blockThreads)
    scatterElementsKernel(const ElementSpace space, const Indices indices, const T *updates, T *y,
                          ScatterReduction reduction) {
  const int64_t stride = int64_t(gridDim.x) * blockDim.x;
  for (int64_t c = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; c < space.columns; c += stride) {
    const ElementSpace::Column column = space.column(c);
    for (int64_t j = 0; j < space.length; ++j) {
      const int64_t at = column.indices + j * space.indexStride, row = indices.row(at, space.dataLength);
      if (row < 0)
        continue;
      T &element = y[column.data + row * space.dataStride];
      element = narrow<T>(combined(reduction, wide(element), wide(updates[at])));
    }
  }
}

} // namespace

std::unique_ptr<Kernel> makeScatterElements(const Invocation &invocation, const BuildOptions &) {
  const ScatterElementsCall call{Call(invocation)};
  const ElementSpace space(call.data, call.updates, call.axis);
  const int64_t elements = elementCount(call.data);
  const CopyPlan copy({{elements, 1, 1}}, byteSize(call.dtype), 0, 0);
  return withNumber(call.dtype, [&](auto zero) -> std::unique_ptr<Kernel> {
    using T = decltype(zero);
    return launching(
        invocation,
        [call, space, copy](const CallContext &context, std::span<void *const> operands) {
          enqueueCopy(copy, operands[0], operands[3], streamOf(context));
          if (space.columns == 0)
            return;
          const Indices indices(operands[1], call.indexType, space.columns * space.length, context);
          launch<scatterElementsKernel<T>>(blocksFor(space.columns), blockThreads, streamOf(context), space, indices,
                                           at<const T>(operands, 2), at<T>(operands, 3), call.reduction);
        },
        indexRefusal("scatter_elements", space.dataLength));
  });
}

} // namespace ds::kernels::cuda
