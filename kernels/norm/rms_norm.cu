// rms_norm, per row of x [rows, cols]:  y = x * rrms * gamma,  rrms = 1 / sqrt(mean(x^2) + epsilon). x is a row
// or, with a residual, the sum of two, which is written and rounded. A block takes a row and reads it once
// (norm_row.cuh). Zhang and Sennrich 2019; torch.nn.functional.rms_norm.
#include "kernels/cuda/Reduce.cuh"
#include "kernels/norm/norm_row.cuh"
#include "kernels/norm/rms_norm_call.h"

namespace ds::kernels::cuda {

namespace {

template <typename T, int width, int kept>
__global__ void __launch_bounds__(normRowThreads, 2)
    rmsNormKernel(const T *x, const Sum<T> *residual, const Sum<T> *gamma, Sum<T> *sums, T *rounded, T *y,
                  Sum<T> *rrmss, int64_t rows, int64_t cols, Sum<T> epsilon) {
  using S = Sum<T>;
  using Values = Pack<T, width>;
  for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    const NormRow<T, width, kept> own(x + row * cols, cols, residual ? residual + row * cols : nullptr,
                                      sums ? sums + row * cols : nullptr, rounded ? rounded + row * cols : nullptr);
    S squares = 0;
    own.forEach([&](int64_t, const Values &xs) {
      for (int j = 0; j < width; ++j)
        squares += wide(xs.values[j]) * wide(xs.values[j]);
    });
    const S rrms = S(1) / std::sqrt(blockSum(squares) / S(cols) + epsilon);
    own.forEach([&](int64_t pack, const Values &xs) {
      const auto gammas = packAt<width>(gamma, pack);
      Values ys;
      for (int j = 0; j < width; ++j)
        ys.values[j] = narrow<T>(wide(xs.values[j]) * rrms * gammas.values[j]);
      storePack(y + row * cols, pack, ys);
    });
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
      const auto *x = at<const T>(operands, 0);
      const auto *residual = call.residual ? at<const S>(operands, call.residual) : nullptr;
      const auto *gamma = at<const S>(operands, 1);
      auto *sums = call.rounded ? at<S>(operands, call.sum) : nullptr;
      auto *rounded = call.residual ? at<T>(operands, call.rounded ? call.rounded : call.sum) : nullptr;
      auto *y = at<T>(operands, call.y);
      if (call.rows > 0)
        withNormRow<T>(inPacks<T>(call.cols, {x, residual, gamma, sums, rounded, y}), call.cols,
                       [&](auto width, auto kept, unsigned threads) {
                         launch<rmsNormKernel<T, width(), kept()>>(
                             blocksFor(call.rows, 1), threads, streamOf(context), x, residual, gamma, sums, rounded, y,
                             at<S>(operands, call.y + 1), call.rows, call.cols, S(call.epsilon));
                       });
    });
  });
}

} // namespace ds::kernels::cuda
