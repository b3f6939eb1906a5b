// learning_rate: one number of the schedules in learning_rate_call.h.
#include "kernels/optimizer/learning_rate_call.h"

namespace ds::kernels {

namespace {

class LearningRate : public Kernel {
public:
  explicit LearningRate(const LearningRateCall &call) : call_(call) {}

  Status execute(const CallContext &, std::span<void *const> operands) noexcept override {
    const int64_t step = *static_cast<const int64_t *>(operands[0]);
    if (Status status = checkStep("learning_rate", step); !status.ok())
      return status;
    *static_cast<double *>(operands[1]) = learningRateOf(call_, step);
    return Status::success();
  }

private:
  LearningRateCall call_;
};

} // namespace

std::unique_ptr<Kernel> makeLearningRate(const Invocation &invocation, const BuildOptions &) {
  return std::make_unique<LearningRate>(LearningRateCall(Call(invocation)));
}

/// One number: there is nothing to make fast.
std::unique_ptr<Kernel> makeLearningRateReference(const Invocation &invocation, const BuildOptions &options) {
  return makeLearningRate(invocation, options);
}

} // namespace ds::kernels
