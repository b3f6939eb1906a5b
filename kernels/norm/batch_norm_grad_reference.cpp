// batch_norm_grad, per channel, with n = (x - mean) * rstd:
//   dx = gamma * rstd * (dy - mean(dy) - n * mean(dy * n)),  dgamma = sum of dy * n,  dbeta = sum of dy.
#include "kernels/norm/batch_norm_call.h"

namespace ds::kernels {

namespace {

template <typename T> class BatchNormGradReference : public Kernel {
public:
  explicit BatchNormGradReference(const BatchNormCall &call) : call_(call) {}

  Status execute(const CallContext &, std::span<void *const> operands) noexcept override {
    const auto *dy = static_cast<const T *>(operands[0]), *x = static_cast<const T *>(operands[1]);
    const double count = double(call_.samples) * double(call_.places);
    for (int64_t c = 0; c < call_.channels; ++c) {
      const auto at = [&](size_t operand) -> T & { return static_cast<T *>(operands[operand])[c]; };
      const double gamma = at(2), mean = at(3), rstd = at(4);
      double sum = 0, dot = 0;
      call_.forEach(c, [&](int64_t i) {
        sum += dy[i];
        dot += dy[i] * (x[i] - mean) * rstd;
      });
      call_.forEach(c, [&](int64_t i) {
        const double n = (x[i] - mean) * rstd;
        static_cast<T *>(operands[5])[i] = T(gamma * rstd * (dy[i] - sum / count - n * dot / count));
      });
      at(6) = T(dot);
      at(7) = T(sum);
    }
    return Status::success();
  }

private:
  BatchNormCall call_;
};

} // namespace

std::unique_ptr<Kernel> makeBatchNormGradReference(const Invocation &invocation, const BuildOptions &) {
  const BatchNormCall call{Call(invocation)};
  return makeByFloat<BatchNormGradReference>(call.dtype, call);
}

} // namespace ds::kernels
