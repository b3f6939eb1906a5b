// layer_norm_grad, with n = (x - mean) * rstd and h = dy * gamma:
//   dx = rstd * (h - mean(h) - n * mean(h * n)),  dgamma = sum over rows of dy * n,  dbeta = sum over rows of dy,
// and residual added to dx.
#include "kernels/norm/layer_norm_call.h"

namespace ds::kernels {

namespace {

template <typename T> class LayerNormGradReference : public Kernel {
public:
  explicit LayerNormGradReference(const LayerNormGradCall &call) : call_(call) {}

  Status execute(const CallContext &, std::span<void *const> operands) noexcept override {
    const int64_t rows = call_.rows, cols = call_.cols;
    const auto *dy = static_cast<const T *>(operands[0]), *x = static_cast<const T *>(operands[1]);
    const auto *gamma = static_cast<const T *>(operands[2]);
    const auto *mean = static_cast<const T *>(operands[3]), *rstd = static_cast<const T *>(operands[4]);
    const auto *residual = call_.residual ? static_cast<const T *>(operands[call_.residual]) : nullptr;
    auto *dx = static_cast<T *>(operands[call_.dx]);
    // The sums over rows first: dx may be the memory of dy, x or residual.
    for (int64_t i = 0; i < cols; ++i) {
      double dgamma = 0, dbeta = 0;
      for (int64_t row = 0; row < rows; ++row) {
        dgamma += dy[row * cols + i] * (double(x[row * cols + i]) - mean[row]) * rstd[row];
        dbeta += dy[row * cols + i];
      }
      static_cast<T *>(operands[call_.dx + 1])[i] = T(dgamma);
      static_cast<T *>(operands[call_.dx + 2])[i] = T(dbeta);
    }
    for (int64_t row = 0; row < rows; ++row) {
      double sumH = 0, sumHn = 0;
      for (int64_t i = row * cols; i < (row + 1) * cols; ++i) {
        const double h = double(dy[i]) * gamma[i - row * cols];
        sumH += h;
        sumHn += h * (double(x[i]) - mean[row]) * rstd[row];
      }
      for (int64_t i = row * cols; i < (row + 1) * cols; ++i) {
        const double h = double(dy[i]) * gamma[i - row * cols], n = (double(x[i]) - mean[row]) * rstd[row];
        const T value = T(rstd[row] * (h - sumH / double(cols) - n * sumHn / double(cols)));
        dx[i] = residual ? value + residual[i] : value;
      }
    }
    return Status::success();
  }

private:
  LayerNormGradCall call_;
};

} // namespace

std::unique_ptr<Kernel> makeLayerNormGradReference(const Invocation &invocation, const BuildOptions &) {
  const LayerNormGradCall call{Call(invocation)};
  return makeByFloat<LayerNormGradReference>(call.dtype, call);
}

} // namespace ds::kernels
