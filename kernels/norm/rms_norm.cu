// rms_norm, per row of x [rows, cols]:  y = x * rrms * gamma,  rrms = 1 / sqrt(mean(x^2) + epsilon). A block takes a
// row. Zhang and Sennrich 2019; torch.nn.functional.rms_norm.
#include "kernels/cuda/Launch.cuh"
#include "kernels/cuda/Number.cuh"
#include "kernels/cuda/Reduce.cuh"
#include "kernels/norm/rms_norm_call.h"

namespace ds::kernels::cuda {

namespace {

template <typename T>
__global__ void __launch_bounds__(mostRowThreads)
    rmsNormKernel(const T *x, const Sum<T> *gamma, T *y, Sum<T> *rrmss, int64_t rows, int64_t cols, Sum<T> epsilon) {
  using S = Sum<T>;
  for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    const T *from = x + row * cols;
    S squares = 0;
    for (int64_t i = threadIdx.x; i < cols; i += blockDim.x)
      squares += wide(from[i]) * wide(from[i]);
    const S rrms = S(1) / std::sqrt(blockSum(squares) / S(cols) + epsilon);
    for (int64_t i = threadIdx.x; i < cols; i += blockDim.x)
      y[row * cols + i] = narrow<T>(wide(from[i]) * rrms * gamma[i]);
    if (threadIdx.x == 0)
      rrmss[row] = rrms;
  }
}

} // namespace

std::unique_ptr<Kernel> makeRmsNorm(const Invocation &invocation, const BuildOptions &) {
  const RmsNormCall call{Call(invocation)};
  return withFloat(call.dtype, [&](auto zero) {
    using T = decltype(zero);
    using S = Sum<T>;
    return launching(invocation, [call](const CallContext &context, std::span<void *const> operands) {
      if (call.rows > 0)
        launch<rmsNormKernel<T>>(blocksFor(call.rows, 1), rowThreads(call.cols), streamOf(context),
                                 at<const T>(operands, 0), at<const S>(operands, 1), at<T>(operands, 2),
                                 at<S>(operands, 3), call.rows, call.cols, S(call.epsilon));
    });
  });
}

} // namespace ds::kernels::cuda
