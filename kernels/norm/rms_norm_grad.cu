// rms_norm_grad, with h = dy * gamma:
//   dx = rrms * (h - x * rrms^2 * mean(h * x)),  dgamma = sum over rows of dy * x * rrms.
// A block takes a row for dx; the sums over rows are in norm_grad.cuh.
#include "kernels/cuda/Reduce.cuh"
#include "kernels/norm/norm_grad.cuh"
#include "kernels/norm/rms_norm_call.h"

namespace ds::kernels::cuda {

namespace {

template <typename T>
__global__ void __launch_bounds__(mostRowThreads)
    dxKernel(const T *dy, const T *x, const Sum<T> *gamma, const Sum<T> *rrmss, T *dx, int64_t rows, int64_t cols) {
  using S = Sum<T>;
  for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    const int64_t first = row * cols;
    const S rrms = rrmss[row];
    S sum = 0;
    for (int64_t i = threadIdx.x; i < cols; i += blockDim.x)
      sum += wide(dy[first + i]) * gamma[i] * wide(x[first + i]);
    const S factor = rrms * rrms * (blockSum(sum) / S(cols));
    for (int64_t i = threadIdx.x; i < cols; i += blockDim.x)
      dx[first + i] = narrow<T>(rrms * (wide(dy[first + i]) * gamma[i] - wide(x[first + i]) * factor));
  }
}

template <typename T> struct DGamma {
  const T *dy, *x;
  const Sum<T> *rrmss;
  int64_t cols;

  __device__ Sum<T> operator()(int64_t row, int64_t col) const {
    const int64_t i = row * cols + col;
    return wide(dy[i]) * wide(x[i]) * rrmss[row];
  }
};

} // namespace

std::unique_ptr<Kernel> makeRmsNormGrad(const Invocation &invocation, const BuildOptions &) {
  const RmsNormGradCall call(Call(invocation), Device::Cuda);
  return withFloat(call.dtype, [&](auto zero) {
    using T = decltype(zero);
    using S = Sum<T>;
    return launching(invocation, [call](const CallContext &context, std::span<void *const> operands) {
      const cudaStream_t stream = streamOf(context);
      const auto *dy = at<const T>(operands, 0), *x = at<const T>(operands, 1);
      const auto *rrmss = at<const S>(operands, 3);
      const DGamma<T> term{dy, x, rrmss, call.cols};
      // The sum first: dx may be the memory of dy.
      enqueueColumnSums<S>(call.rows, call.cols, call.workspace.at(operands), at<S>(operands, 5), term, nullptr, term,
                           stream);
      if (call.rows > 0)
        launch<dxKernel<T>>(blocksFor(call.rows, 1), rowThreads(call.cols), stream, dy, x, at<const S>(operands, 2),
                            rrmss, at<T>(operands, 4), call.rows, call.cols);
    });
  });
}

} // namespace ds::kernels::cuda
