// clip_factor: factor = 1 / max(1, (norm + 1e-6) / max_norm); a NaN norm gives a NaN factor, so that it stays visible.
// DeepSpeed's rule and torch.nn.utils.clip_grad_norm_'s.
#include "kernels/cpu/Call.h"
#include "kernels/cpu/Factories.h"

namespace ds::kernels {

namespace {

class ClipFactor : public Kernel {
public:
  explicit ClipFactor(double maxNorm) : maxNorm_(maxNorm) {}

  Status execute(const CallContext &, std::span<void *const> operands) noexcept override {
    const double ratio = (*static_cast<const double *>(operands[0]) + 1e-6) / maxNorm_;
    *static_cast<double *>(operands[1]) = ratio <= 1 ? 1 : 1 / ratio;
    return Status::success();
  }

private:
  double maxNorm_;
};

} // namespace

std::unique_ptr<Kernel> makeClipFactor(const Invocation &invocation, const BuildOptions &) {
  const Call call(invocation);
  call.expectOperands(2);
  call.expectScalar(0, DType::F64);
  call.expectScalar(1, DType::F64);
  const double maxNorm = call.number("max_norm");
  call.require(maxNorm > 0, "attribute 'max_norm' must be positive, not " + std::to_string(maxNorm));
  return std::make_unique<ClipFactor>(maxNorm);
}

} // namespace ds::kernels
