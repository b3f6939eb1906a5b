// dropout: y = keep ? x / (1 - ratio) : 0, with keep drawn by Philox.h from (seed, step, micro-batch, op_id, element):
// the masks of the CPU, bit by bit. A thread takes the four elements of a Philox block; of a part, where blocks may be
// cut, it draws one for each element. The step is read from device memory, so that a captured launch draws anew each
// step.
#include "kernels/cuda/Launch.cuh"
#include "kernels/cuda/Number.cuh"
#include "kernels/random/dropout_call.h"

namespace ds::kernels::cuda {

namespace {

template <typename T, bool isPart>
__global__ void __launch_bounds__(blockThreads)
    dropoutKernel(const T *x, T *y, int64_t elements, uint64_t seed, const uint64_t *step, uint32_t microbatch,
                  uint32_t opId, uint64_t threshold, Sum<T> scale, const __grid_constant__ ElementNumbers numbers) {
  const uint64_t key = philoxStepKey(seed, *step);
  const int64_t stride = int64_t(gridDim.x) * blockDim.x;
  for (int64_t block = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; block * 4 < elements; block += stride) {
    PhiloxBlock words = philoxElements(key, microbatch, opId, uint64_t(block));
    for (int j = 0; j < 4; ++j)
      if (const int64_t i = block * 4 + j; i < elements) {
        if constexpr (isPart)
          words.words[j] = philoxElement(key, microbatch, opId, uint64_t(numbers.at(i)));
        y[i] = words.words[j] >= threshold ? narrow<T>(wide(x[i]) * scale) : narrow<T>(Sum<T>(0));
      }
  }
}

template <typename T, bool isPart> std::unique_ptr<Kernel> make(const Invocation &invocation, const DropoutCall &call) {
  return launching(invocation, [call](const CallContext &context, std::span<void *const> operands) {
    if (call.elements > 0)
      launch<dropoutKernel<T, isPart>>(blocksFor((call.elements + 3) / 4), blockThreads, streamOf(context),
                                       at<const T>(operands, 0), at<T>(operands, 1), call.elements, context.seed,
                                       context.stream->step, uint32_t(context.microbatch), call.opId, call.threshold,
                                       Sum<T>(call.scale), call.numbers);
  });
}

} // namespace

std::unique_ptr<Kernel> makeDropout(const Invocation &invocation, const BuildOptions &) {
  const DropoutCall call{Call(invocation)};
  return withFloat(call.dtype, [&](auto zero) {
    using T = decltype(zero);
    return call.numbers.isWhole() ? make<T, false>(invocation, call) : make<T, true>(invocation, call);
  });
}

} // namespace ds::kernels::cuda
