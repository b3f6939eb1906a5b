// layer_norm, per row of x [rows, cols]:  y = (x - mean) * rstd * gamma + beta,  rstd = 1 / sqrt(var + epsilon).
// x is a row or, with a residual, the sum of two, which is written and rounded. A block takes a row, reads it once
// (norm_row.cuh), and so y may be the memory of x. With bfloat16 all but x and y is float32. Ba et al. 2016;
// torch.nn.functional.layer_norm.
#include "kernels/cuda/Reduce.cuh"
#include "kernels/norm/layer_norm_call.h"
#include "kernels/norm/norm_row.cuh"

namespace ds::kernels::cuda {

namespace {

template <typename T, int width, int kept>
__global__ void __launch_bounds__(normRowThreads)
    layerNormKernel(const T *x, const Sum<T> *residual, const Sum<T> *gamma, const Sum<T> *beta, Sum<T> *sums,
                    T *rounded, T *y, Sum<T> *means, Sum<T> *rstds, int64_t rows, int64_t cols, Sum<T> epsilon) {
  using S = Sum<T>;
  using Values = Pack<T, width>;
  for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    const NormRow<T, width, kept> own(x + row * cols, cols, residual ? residual + row * cols : nullptr,
                                      sums ? sums + row * cols : nullptr, rounded ? rounded + row * cols : nullptr);
    S sum = 0, squares = 0;
    own.forEach([&](int64_t, const Values &xs) {
      for (int j = 0; j < width; ++j)
        sum += wide(xs.values[j]);
    });
    const S mean = blockSum(sum) / S(cols);
    own.forEach([&](int64_t, const Values &xs) {
      for (int j = 0; j < width; ++j)
        squares += (wide(xs.values[j]) - mean) * (wide(xs.values[j]) - mean);
    });
    const S rstd = S(1) / std::sqrt(blockSum(squares) / S(cols) + epsilon);
    own.forEach([&](int64_t pack, const Values &xs) {
      const auto gammas = packAt<width>(gamma, pack), betas = packAt<width>(beta, pack);
      Values ys;
      for (int j = 0; j < width; ++j)
        ys.values[j] = narrow<T>((wide(xs.values[j]) - mean) * rstd * gammas.values[j] + betas.values[j]);
      storePack(y + row * cols, pack, ys);
    });
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
      const auto *x = at<const T>(operands, 0);
      const auto *residual = call.residual ? at<const S>(operands, call.residual) : nullptr;
      const auto *gamma = at<const S>(operands, 1), *beta = at<const S>(operands, 2);
      auto *sums = call.rounded ? at<S>(operands, call.sum) : nullptr;
      auto *rounded = call.residual ? at<T>(operands, call.rounded ? call.rounded : call.sum) : nullptr;
      auto *y = at<T>(operands, call.y);
      if (call.rows > 0)
        withNormRow<T>(inPacks<T>(call.cols, {x, residual, gamma, beta, sums, rounded, y}), call.cols,
                       [&](auto width, auto kept, unsigned threads) {
                         launch<layerNormKernel<T, width(), kept()>>(
                             blocksFor(call.rows, 1), threads, streamOf(context), x, residual, gamma, beta, sums,
                             rounded, y, at<S>(operands, call.y + 1), at<S>(operands, call.y + 2), call.rows, call.cols,
                             S(call.epsilon));
                       });
    });
  });
}

} // namespace ds::kernels::cuda
