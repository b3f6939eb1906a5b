// pad: y is `value`, except y[low + i * (interior + 1)] = x[i]. The gradient of slice.
#include "kernels/movement/strided_copy.cuh"

#include <cstring>

namespace ds::kernels::cuda {

namespace {

template <typename T> __global__ void __launch_bounds__(blockThreads) fillKernel(T *y, T value, int64_t count) {
  const int64_t stride = int64_t(gridDim.x) * blockDim.x;
  for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += stride)
    y[i] = value;
}

void enqueueFill(const PadCall &call, void *y, int64_t count, cudaStream_t stream) {
  withBytes(call.elementBytes, [&](auto element) {
    using T = decltype(element);
    if constexpr (sizeof(T) <= sizeof(call.value)) {
      std::memcpy(&element, call.value.data(), sizeof(T));
      launch<fillKernel<T>>(blocksFor(count), blockThreads, stream, static_cast<T *>(y), element, count);
    }
  });
}

} // namespace

std::unique_ptr<Kernel> makePad(const Invocation &invocation, const BuildOptions &) {
  const PadCall call{Call(invocation)};
  return launching(invocation, [call, plan = padPlan(call), count = elementCount(call.y)](
                                   const CallContext &context, std::span<void *const> operands) {
    if (count > 0)
      enqueueFill(call, operands[1], count, streamOf(context));
    enqueueCopy(plan, operands[0], operands[1], streamOf(context));
  });
}

} // namespace ds::kernels::cuda
