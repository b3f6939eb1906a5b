// batch_norm, per channel:  y = (x - mean) / sqrt(variance + epsilon) * gamma + beta, in float64.
#include "kernels/norm/batch_norm_call.h"

#include <cmath>

namespace ds::kernels {

namespace {

template <typename T> class BatchNormReference : public Kernel {
public:
  explicit BatchNormReference(const BatchNormCall &call) : call_(call) {}

  Status execute(const CallContext &, std::span<void *const> operands) noexcept override {
    for (int64_t c = 0; c < call_.channels; ++c) {
      const auto *x = static_cast<const T *>(operands[0]);
      const auto at = [&](size_t operand) -> T & { return static_cast<T *>(operands[operand])[c]; };
      const double count = double(call_.samples) * double(call_.places);
      double mean = 0, variance = 0;
      call_.forEach(c, [&](int64_t i) { mean += x[i]; });
      mean /= count;
      call_.forEach(c, [&](int64_t i) { variance += (x[i] - mean) * (x[i] - mean); });
      variance /= count;
      const double rstd = 1 / std::sqrt(variance + call_.epsilon);
      call_.forEach(c, [&](int64_t i) { static_cast<T *>(operands[3])[i] = T((x[i] - mean) * rstd * at(1) + at(2)); });
      at(4) = T(mean);
      at(5) = T(variance);
      at(6) = T(rstd);
    }
    return Status::success();
  }

private:
  BatchNormCall call_;
};

} // namespace

std::unique_ptr<Kernel> makeBatchNormReference(const Invocation &invocation, const BuildOptions &) {
  const BatchNormCall call{Call(invocation)};
  return makeByFloat<BatchNormReference>(call.dtype, call);
}

} // namespace ds::kernels
