// gather_elements: y[.., j, ..] = data[.., indices[.., j, ..], ..] at the axis. A thread makes one element.
#include "kernels/cuda/Launch.cuh"
#include "kernels/cuda/Number.cuh"
#include "kernels/index/element_index_call.h"
#include "kernels/index/element_space.h"
#include "kernels/index/indices.cuh"

namespace ds::kernels::cuda {

namespace {

template <typename T>
__global__ void __launch_bounds__(blockThreads)
    gatherElementsKernel(const ElementSpace space, const T *data, const Indices indices, T *y) {
  const int64_t stride = int64_t(gridDim.x) * blockDim.x;
  for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < space.columns * space.length; i += stride) {
    const ElementSpace::Column column = space.column(i % space.columns);
    const int64_t at = column.indices + i / space.columns * space.indexStride;
    const int64_t row = indices.row(at, space.dataLength);
    if (row >= 0)
      y[at] = data[column.data + row * space.dataStride];
  }
}

} // namespace

std::unique_ptr<Kernel> makeGatherElements(const Invocation &invocation, const BuildOptions &) {
  const Call checked(invocation);
  (void)ElementIndex(checked); // checks
  const Shape &data = checked.shape("data");
  const ElementSpace space(data, checked.shape("indices"), checked.axis(data));
  return launching(
      invocation,
      [space, elementBytes = byteSize(checked.dtype()),
       indexType = checked.dtype("indices")](const CallContext &context, std::span<void *const> operands) {
        const int64_t elements = space.columns * space.length;
        if (elements == 0)
          return;
        const Indices indices(operands[1], indexType, elements, context);
        withBytes(elementBytes, [&](auto zero) {
          using T = decltype(zero);
          launch<gatherElementsKernel<T>>(blocksFor(elements), blockThreads, streamOf(context), space,
                                          at<const T>(operands, 0), indices, at<T>(operands, 2));
        });
      },
      indexRefusal("gather_elements", space.dataLength));
}

} // namespace ds::kernels::cuda
