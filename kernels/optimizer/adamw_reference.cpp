// adamw: one element at a time in float64, as in Loshchilov & Hutter, "Decoupled weight decay regularization".
#include "kernels/optimizer/adamw_call.h"

#include <cmath>

namespace ds::kernels {

namespace {

template <typename T> class AdamWReference : public Kernel {
public:
  explicit AdamWReference(const AdamWCall &call) : call_(call) {}

  Status execute(const CallContext &, std::span<void *const> operands) noexcept override {
    if (Status status = checkStep("adamw", *static_cast<const int64_t *>(operands[5])); !status.ok())
      return status;
    if (*static_cast<const double *>(operands[6]) == 0) // no update
      return Status::success();
    auto *p = static_cast<T *>(operands[0]), *m = static_cast<T *>(operands[2]), *v = static_cast<T *>(operands[3]);
    const auto *gradient = static_cast<const T *>(operands[1]);
    const double lr = *static_cast<const double *>(operands[4]), clip = *static_cast<const double *>(operands[6]);
    const double beta1 = call_.cycled ? *static_cast<const double *>(operands[7]) : call_.beta1;
    const double t = double(*static_cast<const int64_t *>(operands[5])) + 1;
    for (int64_t i = 0; i < call_.elements; ++i) {
      double g = gradient[i] * clip, parameter = p[i];
      if (call_.decoupled)
        parameter -= lr * call_.weightDecay * parameter;
      else
        g += call_.weightDecay * parameter;
      const double m1 = beta1 * m[i] + (1 - beta1) * g;
      const double v1 = call_.beta2 * v[i] + (1 - call_.beta2) * g * g;
      const double mHat = m1 / (1 - std::pow(beta1, t)), vHat = v1 / (1 - std::pow(call_.beta2, t));
      p[i] = T(parameter - lr * mHat / (std::sqrt(vHat) + call_.epsilon));
      m[i] = T(m1);
      v[i] = T(v1);
    }
    return Status::success();
  }

private:
  AdamWCall call_;
};

} // namespace

std::unique_ptr<Kernel> makeAdamWReference(const Invocation &invocation, const BuildOptions &) {
  const AdamWCall call{Call(invocation)};
  return makeByFloat<AdamWReference>(call.dtype, call);
}

} // namespace ds::kernels
