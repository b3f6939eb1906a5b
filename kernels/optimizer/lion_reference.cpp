// lion: one element at a time in float64, as in Chen et al., "Symbolic discovery of optimization algorithms".
#include "kernels/optimizer/lion_call.h"

namespace ds::kernels {

namespace {

template <typename T> class LionReference : public Kernel {
public:
  explicit LionReference(const LionCall &call) : call_(call) {}

  Status execute(const CallContext &, std::span<void *const> operands) noexcept override {
    if (Status status = checkStep("lion", *static_cast<const int64_t *>(operands[4])); !status.ok())
      return status;
    if (*static_cast<const double *>(operands[5]) == 0) // no update
      return Status::success();
    auto *p = static_cast<T *>(operands[0]), *m = static_cast<T *>(operands[2]);
    const auto *gradient = static_cast<const T *>(operands[1]);
    const double lr = *static_cast<const double *>(operands[3]), clip = *static_cast<const double *>(operands[5]);
    const double beta1 = beta1Of(call_, operands.back());
    for (int64_t i = 0; i < call_.elements; ++i) {
      const double g = gradient[i] * clip, direction = beta1 * m[i] + (1 - beta1) * g;
      const double sign = double(direction > 0) - double(direction < 0);
      p[i] = T(p[i] - lr * (sign + call_.weightDecay * p[i]));
      m[i] = T(call_.beta2 * m[i] + (1 - call_.beta2) * g);
    }
    return Status::success();
  }

private:
  LionCall call_;
};

} // namespace

std::unique_ptr<Kernel> makeLionReference(const Invocation &invocation, const BuildOptions &) {
  const LionCall call{Call(invocation)};
  return makeByFloat<LionReference>(call.dtype, call);
}

} // namespace ds::kernels
