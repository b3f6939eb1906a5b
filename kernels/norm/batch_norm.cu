// batch_norm, per channel of x [samples, channels, places...]: mean, biased variance, rstd = 1 / sqrt(var + epsilon)
// and y = (x - mean) * rstd * gamma + beta. A block takes a channel. Ioffe and Szegedy 2015;
// torch.nn.functional.batch_norm.
#include "kernels/cuda/Launch.cuh"
#include "kernels/norm/batch_norm.cuh"
#include "kernels/norm/batch_norm_call.h"

namespace ds::kernels::cuda {

namespace {

template <typename T>
__global__ void __launch_bounds__(channelThreads)
    batchNormKernel(const T *x, const Sum<T> *gamma, const Sum<T> *beta, T *y, Sum<T> *means, Sum<T> *variances,
                    Sum<T> *rstds, const Channels channels, Sum<T> epsilon) {
  using S = Sum<T>;
  for (int64_t c = blockIdx.x; c < channels.count; c += gridDim.x) {
    const S elements = S(channels.samples * channels.places);
    S sum = 0, squares = 0;
    channels.forEach(c, [&](int64_t i) { sum += wide(x[i]); });
    const S mean = blockSum(sum) / elements;
    channels.forEach(c, [&](int64_t i) { squares += (wide(x[i]) - mean) * (wide(x[i]) - mean); });
    const S variance = blockSum(squares) / elements, rstd = S(1) / std::sqrt(variance + epsilon);
    const S factor = gamma[c], shift = beta[c];
    channels.forEach(c, [&](int64_t i) { y[i] = narrow<T>((wide(x[i]) - mean) * rstd * factor + shift); });
    if (threadIdx.x == 0) {
      means[c] = mean;
      variances[c] = variance;
      rstds[c] = rstd;
    }
  }
}

} // namespace

std::unique_ptr<Kernel> makeBatchNorm(const Invocation &invocation, const BuildOptions &) {
  const BatchNormCall call{Call(invocation)};
  return withFloat(call.dtype, [&](auto zero) {
    using T = decltype(zero);
    using S = Sum<T>;
    return launching(invocation, [call](const CallContext &context, std::span<void *const> operands) {
      if (call.channels > 0)
        launch<batchNormKernel<T>>(blocksFor(call.channels, 1), channelThreads, streamOf(context),
                                   at<const T>(operands, 0), at<const S>(operands, 1), at<const S>(operands, 2),
                                   at<T>(operands, 3), at<S>(operands, 4), at<S>(operands, 5), at<S>(operands, 6),
                                   Channels{call.samples, call.channels, call.places}, S(call.epsilon));
    });
  });
}

} // namespace ds::kernels::cuda
