// learning_rate and cycled_momentum: one number of the schedules in learning_rate_call.h and cycled_momentum_call.h.
#include "kernels/optimizer/cycled_momentum_call.h"
#include "kernels/optimizer/learning_rate_call.h"

namespace ds::kernels {

namespace {

/// Writes CallT::at(step).
template <typename CallT> class Scheduled : public Kernel {
public:
  Scheduled(const char *name, const Invocation &invocation) : name_(name), call_(Call(invocation)) {}

  Status execute(const CallContext &, std::span<void *const> operands) noexcept override {
    const int64_t step = *static_cast<const int64_t *>(operands[0]);
    if (Status status = checkStep(name_, step); !status.ok())
      return status;
    *static_cast<double *>(operands[1]) = call_.at(step);
    return Status::success();
  }

private:
  const char *name_;
  CallT call_;
};

} // namespace

std::unique_ptr<Kernel> makeLearningRate(const Invocation &invocation, const BuildOptions &) {
  return std::make_unique<Scheduled<LearningRateCall>>("learning_rate", invocation);
}
std::unique_ptr<Kernel> makeCycledMomentum(const Invocation &invocation, const BuildOptions &) {
  return std::make_unique<Scheduled<CycledMomentumCall>>("cycled_momentum", invocation);
}

/// One number: there is nothing to make fast.
std::unique_ptr<Kernel> makeLearningRateReference(const Invocation &invocation, const BuildOptions &options) {
  return makeLearningRate(invocation, options);
}
std::unique_ptr<Kernel> makeCycledMomentumReference(const Invocation &invocation, const BuildOptions &options) {
  return makeCycledMomentum(invocation, options);
}

} // namespace ds::kernels
