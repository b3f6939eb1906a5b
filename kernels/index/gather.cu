// gather: y = numpy.take(data, indices, axis). Rows of `inner` elements are copied in units as wide as their addresses
// allow; those of other parts of a table are 0. A row whose index is refused is left as it is.
#include "kernels/cuda/Launch.cuh"
#include "kernels/cuda/Number.cuh"
#include "kernels/index/gather_call.h"
#include "kernels/index/indices.cuh"

#include <cstddef>

namespace ds::kernels::cuda {

namespace {

/// data [outer, length, units], y [outer, count, units], units of T; data are rows of a table, from `first` on.
template <typename T>
__global__ void __launch_bounds__(blockThreads)
    gatherKernel(const T *data, const Indices indices, T *y, int64_t outer, int64_t length, int64_t units,
                 int64_t whole, int64_t first) {
  const int64_t stride = int64_t(gridDim.x) * blockDim.x, total = outer * indices.count * units;
  for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < total; i += stride) {
    const int64_t row = i / units, unit = i % units;
    const int64_t named = indices.row(row % indices.count, whole), from = named - first;
    if (named >= 0)
      y[i] = from >= 0 && from < length ? data[(row / indices.count * length + from) * units + unit] : T{};
  }
}

} // namespace

std::unique_ptr<Kernel> makeGather(const Invocation &invocation, const BuildOptions &) {
  const Call checked(invocation);
  const GatherCall call(checked, "data", "y");
  const int64_t elementBytes = byteSize(checked.dtype()), rowBytes = call.data.inner * elementBytes;
  return launching(
      invocation,
      [call, rowBytes, elementBytes](const CallContext &context, std::span<void *const> operands) {
        if (call.count == 0 || call.data.outer == 0 || rowBytes == 0)
          return;
        const uintptr_t addresses = reinterpret_cast<uintptr_t>(operands[0]) | reinterpret_cast<uintptr_t>(operands[2]);
        int64_t unitBytes = 16;
        while (unitBytes > elementBytes && (rowBytes % unitBytes != 0 || addresses % uintptr_t(unitBytes) != 0))
          unitBytes /= 2;
        const Indices indices(operands[1], call.indexType, call.count, context);
        withBytes(unitBytes, [&](auto zero) {
          using T = decltype(zero);
          const int64_t units = rowBytes / unitBytes;
          launch<gatherKernel<T>>(blocksFor(call.data.outer * call.count * units), blockThreads, streamOf(context),
                                  at<const T>(operands, 0), indices, at<T>(operands, 2), call.data.outer,
                                  call.data.length, units, call.whole, call.first);
        });
      },
      indexRefusal("gather", call.whole));
}

} // namespace ds::kernels::cuda
