// layer_norm, per row:  y = (x - mean) / sqrt(var + epsilon) * gamma + beta, in float64.
#include "kernels/norm/layer_norm_call.h"
#include "kernels/norm/norm_factory.h"

#include <cmath>

namespace ds::kernels {

namespace {

template <typename T> class LayerNormReference : public Kernel {
public:
  explicit LayerNormReference(const LayerNormCall &call) : call_(call) {}

  Status execute(const CallContext &, std::span<void *const> operands) noexcept override {
    const int64_t cols = call_.cols;
    const auto *gamma = static_cast<const T *>(operands[1]), *beta = static_cast<const T *>(operands[2]);
    for (int64_t row = 0; row < call_.rows; ++row) {
      const T *x = call_.normalizedRow<T>(operands, row);
      T *y = static_cast<T *>(operands[call_.y]) + row * cols;
      double mean = 0, variance = 0;
      for (int64_t i = 0; i < cols; ++i)
        mean += x[i];
      mean /= double(cols);
      for (int64_t i = 0; i < cols; ++i)
        variance += (x[i] - mean) * (x[i] - mean);
      const double rstd = 1 / std::sqrt(variance / double(cols) + call_.epsilon);
      for (int64_t i = 0; i < cols; ++i)
        y[i] = T((x[i] - mean) * rstd * gamma[i] + beta[i]);
      static_cast<T *>(operands[call_.y + 1])[row] = T(mean);
      static_cast<T *>(operands[call_.y + 2])[row] = T(rstd);
    }
    return Status::success();
  }

private:
  LayerNormCall call_;
};

} // namespace

std::unique_ptr<Kernel> makeLayerNormReference(const Invocation &invocation, const BuildOptions &options) {
  return makeNorm<LayerNormReference, LayerNormCall>(invocation, options);
}

} // namespace ds::kernels
