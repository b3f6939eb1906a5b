// layer_norm_grad, with n = (x - mean) * rstd and h = dy * gamma:
//   dx = rstd * (h - mean(h) - n * mean(h * n)),  dgamma = sum over rows of dy * n,  dbeta = sum over rows of dy.
// A block takes a row for dx; the sums over rows are in norm_grad.cuh.
#include "kernels/cuda/Reduce.cuh"
#include "kernels/norm/layer_norm_call.h"
#include "kernels/norm/norm_grad.cuh"

namespace ds::kernels::cuda {

namespace {

template <typename T>
__global__ void __launch_bounds__(mostRowThreads)
    dxKernel(const T *dy, const T *x, const Sum<T> *gamma, const Sum<T> *means, const Sum<T> *rstds, T *dx,
             int64_t rows, int64_t cols) {
  using S = Sum<T>;
  for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    const int64_t first = row * cols;
    const S mean = means[row], rstd = rstds[row];
    S sumH = 0, sumHn = 0;
    for (int64_t i = threadIdx.x; i < cols; i += blockDim.x) {
      const S h = wide(dy[first + i]) * gamma[i];
      sumH += h;
      sumHn += h * (wide(x[first + i]) - mean) * rstd;
    }
    const S meanH = blockSum(sumH) / S(cols), meanHn = blockSum(sumHn) / S(cols);
    for (int64_t i = threadIdx.x; i < cols; i += blockDim.x) {
      const S h = wide(dy[first + i]) * gamma[i], n = (wide(x[first + i]) - mean) * rstd;
      dx[first + i] = narrow<T>(rstd * (h - meanH - n * meanHn));
    }
  }
}

template <typename T> struct DGamma {
  const T *dy, *x;
  const Sum<T> *means, *rstds;
  int64_t cols;

  __device__ Sum<T> operator()(int64_t row, int64_t col) const {
    const int64_t i = row * cols + col;
    return wide(dy[i]) * (wide(x[i]) - means[row]) * rstds[row];
  }
};
template <typename T> struct DBeta {
  const T *dy;
  int64_t cols;

  __device__ Sum<T> operator()(int64_t row, int64_t col) const { return wide(dy[row * cols + col]); }
};

} // namespace

std::unique_ptr<Kernel> makeLayerNormGrad(const Invocation &invocation, const BuildOptions &) {
  const LayerNormGradCall call(Call(invocation), Device::Cuda);
  return withFloat(call.dtype, [&](auto zero) {
    using T = decltype(zero);
    using S = Sum<T>;
    return launching(invocation, [call](const CallContext &context, std::span<void *const> operands) {
      const cudaStream_t stream = streamOf(context);
      const auto *dy = at<const T>(operands, 0), *x = at<const T>(operands, 1);
      const auto *means = at<const S>(operands, 3), *rstds = at<const S>(operands, 4);
      // The sums first: dx may be the memory of dy.
      enqueueColumnSums<S>(call.rows, call.cols, call.workspace.at(operands), at<S>(operands, 6),
                           DGamma<T>{dy, x, means, rstds, call.cols}, at<S>(operands, 7), DBeta<T>{dy, call.cols},
                           stream);
      if (call.rows > 0)
        launch<dxKernel<T>>(blocksFor(call.rows, 1), rowThreads(call.cols), stream, dy, x, at<const S>(operands, 2),
                            means, rstds, at<T>(operands, 5), call.rows, call.cols);
    });
  });
}

} // namespace ds::kernels::cuda
