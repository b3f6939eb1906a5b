// clip_factor: factor = 1 / max(1, (norm + 1e-6) / max_norm); a NaN norm gives a NaN factor, so that it stays visible.
// DeepSpeed's rule and torch.nn.utils.clip_grad_norm_'s.
#include "kernels/clip/clip_factor_call.h"

namespace ds::kernels {

namespace {

class ClipFactor : public Kernel {
public:
  explicit ClipFactor(const ClipFactorCall &call) : maxNorm_(call.maxNorm) {}

  Status execute(const CallContext &, std::span<void *const> operands) noexcept override {
    *static_cast<double *>(operands[1]) = clipFactorOf(*static_cast<const double *>(operands[0]), maxNorm_);
    return Status::success();
  }

private:
  double maxNorm_;
};

} // namespace

std::unique_ptr<Kernel> makeClipFactor(const Invocation &invocation, const BuildOptions &) {
  return std::make_unique<ClipFactor>(ClipFactorCall(Call(invocation)));
}

/// One number: there is nothing to make fast.
std::unique_ptr<Kernel> makeClipFactorReference(const Invocation &invocation, const BuildOptions &options) {
  return makeClipFactor(invocation, options);
}

} // namespace ds::kernels
