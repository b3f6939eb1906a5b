// rms_norm, per row:  y = x / sqrt(mean(x^2) + epsilon) * gamma, in float64.
#include "kernels/norm/norm_factory.h"
#include "kernels/norm/rms_norm_call.h"

#include <cmath>

namespace ds::kernels {

namespace {

template <typename T> class RmsNormReference : public Kernel {
public:
  explicit RmsNormReference(const RmsNormCall &call) : call_(call) {}

  Status execute(const CallContext &, std::span<void *const> operands) noexcept override {
    const int64_t cols = call_.cols;
    const auto *gamma = static_cast<const T *>(operands[1]);
    for (int64_t row = 0; row < call_.rows; ++row) {
      const T *x = call_.normalizedRow<T>(operands, row);
      T *y = static_cast<T *>(operands[call_.y]) + row * cols;
      double squares = 0;
      for (int64_t i = 0; i < cols; ++i)
        squares += double(x[i]) * x[i];
      const double rrms = 1 / std::sqrt(squares / double(cols) + call_.epsilon);
      for (int64_t i = 0; i < cols; ++i)
        y[i] = T(x[i] * rrms * gamma[i]);
      static_cast<T *>(operands[call_.y + 1])[row] = T(rrms);
    }
    return Status::success();
  }

private:
  RmsNormCall call_;
};

} // namespace

std::unique_ptr<Kernel> makeRmsNormReference(const Invocation &invocation, const BuildOptions &options) {
  return makeNorm<RmsNormReference, RmsNormCall>(invocation, options);
}

} // namespace ds::kernels
