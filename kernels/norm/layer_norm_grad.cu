// layer_norm_grad, with n = (x - mean) * rstd and h = dy * gamma:
//   dx = rstd * (h - mean(h) - n * mean(h * n)),  dgamma = sum over rows of dy * n,  dbeta = sum over rows of dy,
// and residual added to dx.
// A block takes a row for dx and reads it once (norm_row.cuh); the sums over rows are in norm_grad.cuh.
#include "kernels/cuda/Reduce.cuh"
#include "kernels/norm/layer_norm_call.h"
#include "kernels/norm/norm_grad.cuh"
#include "kernels/norm/norm_row.cuh"

namespace ds::kernels::cuda {

namespace {

template <typename T, int width, int kept>
__global__ void __launch_bounds__(normGradThreads)
    dxKernel(const T *dy, const T *x, const Sum<T> *gamma, const Sum<T> *means, const Sum<T> *rstds, const T *residual,
             T *dx, int64_t rows, int64_t cols) {
  using S = Sum<T>;
  using Values = Pack<T, width>;
  for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    const NormRow<T, width, kept> dyRow(dy + row * cols, cols), xRow(x + row * cols, cols);
    const S mean = means[row], rstd = rstds[row];
    S sumH = 0, sumHn = 0;
    dyRow.forEachWith(xRow, [&](int64_t pack, const Values &dys, const Values &xs) {
      const auto gammas = packAt<width>(gamma, pack);
      for (int j = 0; j < width; ++j) {
        const S h = wide(dys.values[j]) * gammas.values[j];
        sumH += h;
        sumHn += h * (wide(xs.values[j]) - mean) * rstd;
      }
    });
    const S meanH = blockSum(sumH) / S(cols), meanHn = blockSum(sumHn) / S(cols);
    dyRow.forEachWith(xRow, [&](int64_t pack, const Values &dys, const Values &xs) {
      const auto gammas = packAt<width>(gamma, pack);
      Values dxs;
      for (int j = 0; j < width; ++j) {
        const S h = wide(dys.values[j]) * gammas.values[j], n = (wide(xs.values[j]) - mean) * rstd;
        dxs.values[j] = narrow<T>(rstd * (h - meanH - n * meanHn));
      }
      addResidual(dxs, residual ? residual + row * cols : nullptr, pack);
      storePack(dx + row * cols, pack, dxs);
    });
  }
}

/// Of one row, the terms of dgamma and dbeta in `width` columns.
template <typename T> struct GammaBetaTerms {
  const T *dy, *x;
  const Sum<T> *means, *rstds;
  int64_t cols;

  template <int width>
  __device__ void add(int64_t row, int64_t pack, Pack<Sum<T>, width> &dgamma, Pack<Sum<T>, width> &dbeta) const {
    const auto dys = packAt<width>(dy + row * cols, pack), xs = packAt<width>(x + row * cols, pack);
    const Sum<T> mean = means[row], rstd = rstds[row];
    for (int j = 0; j < width; ++j) {
      dgamma.values[j] += wide(dys.values[j]) * (wide(xs.values[j]) - mean) * rstd;
      dbeta.values[j] += wide(dys.values[j]);
    }
  }
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
      const auto *gamma = at<const S>(operands, 2);
      const auto *residual = call.residual ? at<const T>(operands, call.residual) : nullptr;
      auto *dx = at<T>(operands, call.dx);
      const bool packed = inPacks<T>(call.cols, {dy, x, gamma, residual, dx});
      // The sums first: dx may be the memory of dy.
      enqueueColumnSums<T>(packed, call.rows, call.cols, call.workspace.at(operands),
                           GammaBetaTerms<T>{dy, x, means, rstds, call.cols}, at<S>(operands, call.dx + 1),
                           at<S>(operands, call.dx + 2), stream);
      if (call.rows > 0)
        withNormRow<T>(packed, call.cols, normGradThreads, [&](auto width, auto kept, unsigned threads) {
          launch<dxKernel<T, width(), kept()>>(blocksFor(call.rows, 1), threads, stream, dy, x, gamma, means, rstds,
                                               residual, dx, call.rows, call.cols);
        });
    });
  });
}

} // namespace ds::kernels::cuda
