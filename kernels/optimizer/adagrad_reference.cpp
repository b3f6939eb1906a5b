// adagrad: one element at a time in float64, as in Duchi, Hazan & Singer, "Adaptive subgradient methods".
#include "kernels/optimizer/adagrad_call.h"

#include <cmath>

namespace ds::kernels {

namespace {

template <typename T> class AdagradReference : public Kernel {
public:
  explicit AdagradReference(const AdagradCall &call) : call_(call) {}

  Status execute(const CallContext &, std::span<void *const> operands) noexcept override {
    const int64_t step = *static_cast<const int64_t *>(operands[4]);
    if (Status status = checkStep("adagrad", step); !status.ok())
      return status;
    if (*static_cast<const double *>(operands[5]) == 0) // no update
      return Status::success();
    auto *p = static_cast<T *>(operands[0]), *sum = static_cast<T *>(operands[2]);
    const auto *gradient = static_cast<const T *>(operands[1]);
    const double rate = call_.rate(*static_cast<const double *>(operands[3]), step);
    const double clip = *static_cast<const double *>(operands[5]);
    for (int64_t i = 0; i < call_.elements; ++i) {
      const double g = gradient[i] * clip + call_.weightDecay * p[i];
      const double squares = sum[i] + g * g;
      sum[i] = T(squares);
      p[i] = T(p[i] - rate * g / (std::sqrt(squares) + call_.epsilon));
    }
    return Status::success();
  }

private:
  AdagradCall call_;
};

} // namespace

std::unique_ptr<Kernel> makeAdagradReference(const Invocation &invocation, const BuildOptions &) {
  const AdagradCall call{Call(invocation)};
  return makeByFloat<AdagradReference>(call.dtype, call);
}

} // namespace ds::kernels
