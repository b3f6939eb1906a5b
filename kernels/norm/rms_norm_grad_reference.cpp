// rms_norm_grad, with h = dy * gamma:  dx = rrms * (h - x * rrms^2 * mean(h * x)),  dgamma = sum over rows of dy * x *
// rrms, and residual added to dx.
#include "kernels/norm/rms_norm_call.h"

namespace ds::kernels {

namespace {

template <typename T> class RmsNormGradReference : public Kernel {
public:
  explicit RmsNormGradReference(const RmsNormGradCall &call) : call_(call) {}

  Status execute(const CallContext &, std::span<void *const> operands) noexcept override {
    const int64_t rows = call_.rows, cols = call_.cols;
    const auto *dy = static_cast<const T *>(operands[0]), *x = static_cast<const T *>(operands[1]);
    const auto *gamma = static_cast<const T *>(operands[2]), *rrms = static_cast<const T *>(operands[3]);
    const auto *residual = call_.residual ? static_cast<const T *>(operands[call_.residual]) : nullptr;
    auto *dx = static_cast<T *>(operands[call_.dx]);
    // The sum over rows first: dx may be the memory of dy, x or residual.
    for (int64_t i = 0; i < cols; ++i) {
      double sum = 0;
      for (int64_t row = 0; row < rows; ++row)
        sum += double(dy[row * cols + i]) * x[row * cols + i] * rrms[row];
      static_cast<T *>(operands[call_.dx + 1])[i] = T(sum);
    }
    for (int64_t row = 0; row < rows; ++row) {
      const double factor = rrms[row];
      double sum = 0;
      for (int64_t i = 0; i < cols; ++i)
        sum += double(dy[row * cols + i]) * gamma[i] * x[row * cols + i];
      for (int64_t i = 0; i < cols; ++i) {
        const double h = double(dy[row * cols + i]) * gamma[i];
        const T value = T(factor * (h - x[row * cols + i] * factor * factor * sum / double(cols)));
        dx[row * cols + i] = residual ? value + residual[row * cols + i] : value;
      }
    }
    return Status::success();
  }

private:
  RmsNormGradCall call_;
};

} // namespace

std::unique_ptr<Kernel> makeRmsNormGradReference(const Invocation &invocation, const BuildOptions &) {
  const RmsNormGradCall call{Call(invocation)};
  return makeByFloat<RmsNormGradReference>(call.dtype, call);
}

} // namespace ds::kernels
