// cycled_momentum: one number of the schedule in cycled_momentum_call.h.
#include "kernels/optimizer/cycled_momentum_call.h"

namespace ds::kernels {

namespace {

class CycledMomentum : public Kernel {
public:
  explicit CycledMomentum(const CycledMomentumCall &call) : call_(call) {}

  Status execute(const CallContext &, std::span<void *const> operands) noexcept override {
    const int64_t step = *static_cast<const int64_t *>(operands[0]);
    if (Status status = checkStep("cycled_momentum", step); !status.ok())
      return status;
    *static_cast<double *>(operands[1]) = call_.at(step);
    return Status::success();
  }

private:
  CycledMomentumCall call_;
};

} // namespace

std::unique_ptr<Kernel> makeCycledMomentum(const Invocation &invocation, const BuildOptions &) {
  return std::make_unique<CycledMomentum>(CycledMomentumCall(Call(invocation)));
}

/// One number: there is nothing to make fast.
std::unique_ptr<Kernel> makeCycledMomentumReference(const Invocation &invocation, const BuildOptions &options) {
  return makeCycledMomentum(invocation, options);
}

} // namespace ds::kernels
