// sgd: one element at a time in float64, torch.optim.SGD with dampening 0.
#include "kernels/optimizer/sgd_call.h"

namespace ds::kernels {

namespace {

template <typename T> class SgdReference : public Kernel {
public:
  explicit SgdReference(const SgdCall &call) : call_(call) {}

  Status execute(const CallContext &, std::span<void *const> operands) noexcept override {
    const int64_t step = *static_cast<const int64_t *>(operands[call_.tensors + 1]);
    if (Status status = checkStep("sgd", step); !status.ok())
      return status;
    if (*static_cast<const double *>(operands[call_.tensors + 2]) == 0) // no update
      return Status::success();
    auto *p = static_cast<T *>(operands[0]);
    const auto *gradient = static_cast<const T *>(operands[1]);
    T *buffer = call_.momentum > 0 ? static_cast<T *>(operands[2]) : nullptr;
    const double lr = *static_cast<const double *>(operands[call_.tensors]);
    const bool first = step == 0;
    const double clip = *static_cast<const double *>(operands[call_.tensors + 2]);
    for (int64_t i = 0; i < call_.elements; ++i) {
      double g = gradient[i] * clip + call_.weightDecay * p[i];
      if (buffer) {
        const double b = first ? g : call_.momentum * buffer[i] + g;
        buffer[i] = T(b);
        g = call_.nesterov ? g + call_.momentum * b : b;
      }
      p[i] = T(p[i] - lr * g);
    }
    return Status::success();
  }

private:
  SgdCall call_;
};

} // namespace

std::unique_ptr<Kernel> makeSgdReference(const Invocation &invocation, const BuildOptions &) {
  const SgdCall call{Call(invocation)};
  return makeByFloat<SgdReference>(call.dtype, call);
}

} // namespace ds::kernels
