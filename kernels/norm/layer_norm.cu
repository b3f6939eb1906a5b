// layer_norm, per row of x [rows, cols]:  y = (x - mean) * rstd * gamma + beta,  rstd = 1 / sqrt(var + epsilon).
// A block takes a row; the row is read again for the variance and for y, from the first-level cache. With bfloat16
// all but x and y is float32. Ba et al. 2016; torch.nn.functional.layer_norm.
#include "kernels/cuda/Launch.cuh"
#include "kernels/cuda/Number.cuh"
#include "kernels/cuda/Reduce.cuh"
#include "kernels/norm/layer_norm_call.h"

namespace ds::kernels::cuda {

namespace {

template <typename T>
__global__ void __launch_bounds__(mostRowThreads)
    layerNormKernel(const T *x, const Sum<T> *gamma, const Sum<T> *beta, T *y, Sum<T> *means, Sum<T> *rstds,
                    int64_t rows, int64_t cols, Sum<T> epsilon) {
  using S = Sum<T>;
  for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    const T *from = x + row * cols;
    S sum = 0, squares = 0;
    for (int64_t i = threadIdx.x; i < cols; i += blockDim.x)
      sum += wide(from[i]);
    const S mean = blockSum(sum) / S(cols);
    for (int64_t i = threadIdx.x; i < cols; i += blockDim.x)
      squares += (wide(from[i]) - mean) * (wide(from[i]) - mean);
    const S rstd = S(1) / std::sqrt(blockSum(squares) / S(cols) + epsilon);
    for (int64_t i = threadIdx.x; i < cols; i += blockDim.x)
      y[row * cols + i] = narrow<T>((wide(from[i]) - mean) * rstd * gamma[i] + beta[i]);
    if (threadIdx.x == 0) {
      means[row] = mean;
      rstds[row] = rstd;
    }
  }
}

} // namespace

std::unique_ptr<Kernel> makeLayerNorm(const Invocation &invocation, const BuildOptions &) {
  const LayerNormCall call{Call(invocation)};
  return withFloat(call.dtype, [&](auto zero) {
    using T = decltype(zero);
    using S = Sum<T>;
    return launching(invocation, [call](const CallContext &context, std::span<void *const> operands) {
      if (call.rows > 0)
        launch<layerNormKernel<T>>(blocksFor(call.rows, 1), rowThreads(call.cols), streamOf(context),
                                   at<const T>(operands, 0), at<const S>(operands, 1), at<const S>(operands, 2),
                                   at<T>(operands, 3), at<S>(operands, 4), at<S>(operands, 5), call.rows, call.cols,
                                   S(call.epsilon));
    });
  });
}

} // namespace ds::kernels::cuda
