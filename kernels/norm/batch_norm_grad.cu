// batch_norm_grad, per channel, with n = (x - mean) * rstd:
//   dx = gamma * rstd * (dy - mean(dy) - n * mean(dy * n)),  dgamma = sum of dy * n,  dbeta = sum of dy.
// A block takes a channel.
#include "kernels/cuda/Launch.cuh"
#include "kernels/norm/batch_norm.cuh"
#include "kernels/norm/batch_norm_call.h"

namespace ds::kernels::cuda {

namespace {

template <typename T>
__global__ void __launch_bounds__(channelThreads)
    batchNormGradKernel(const T *dy, const T *x, const Sum<T> *gamma, const Sum<T> *means, const Sum<T> *rstds, T *dx,
                        Sum<T> *dgamma, Sum<T> *dbeta, const Channels channels) {
  using S = Sum<T>;
  for (int64_t c = blockIdx.x; c < channels.count; c += gridDim.x) {
    const S mean = means[c], rstd = rstds[c], factor = gamma[c] * rstd;
    const S elements = S(channels.samples * channels.places);
    S sum = 0, dot = 0;
    channels.forEach(c, [&](int64_t i) {
      sum += wide(dy[i]);
      dot += wide(dy[i]) * (wide(x[i]) - mean) * rstd;
    });
    sum = blockSum(sum);
    dot = blockSum(dot);
    const S meanDy = sum / elements, meanDot = dot / elements;
    channels.forEach(c, [&](int64_t i) {
      const S n = (wide(x[i]) - mean) * rstd;
      dx[i] = narrow<T>(factor * (wide(dy[i]) - meanDy - n * meanDot));
    });
    if (threadIdx.x == 0) {
      dgamma[c] = dot;
      dbeta[c] = sum;
    }
  }
}

} // namespace

std::unique_ptr<Kernel> makeBatchNormGrad(const Invocation &invocation, const BuildOptions &) {
  const BatchNormCall call{Call(invocation)};
  return withFloat(call.dtype, [&](auto zero) {
    using T = decltype(zero);
    using S = Sum<T>;
    return launching(invocation, [call](const CallContext &context, std::span<void *const> operands) {
      if (call.channels > 0)
        launch<batchNormGradKernel<T>>(blocksFor(call.channels, 1), channelThreads, streamOf(context),
                                       at<const T>(operands, 0), at<const T>(operands, 1), at<const S>(operands, 2),
                                       at<const S>(operands, 3), at<const S>(operands, 4), at<T>(operands, 5),
                                       at<S>(operands, 6), at<S>(operands, 7),
                                       Channels{call.samples, call.channels, call.places});
    });
  });
}

} // namespace ds::kernels::cuda
