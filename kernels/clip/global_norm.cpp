// global_norm: norm = sqrt(sum of all partials), in operand order, then element order, in float64. Partials of blocks
// of less than 1024 elements are first added to those of 1024, so that the norm does not depend on the blocks.
// torch.nn.utils.clip_grad_norm_'s total norm, on the partial sums that block_sum_squares wrote.
#include "kernels/clip/global_norm_call.h"

#include <cmath>

namespace ds::kernels {

namespace {

class GlobalNorm : public Kernel {
public:
  explicit GlobalNorm(GlobalNormCall call) : call_(std::move(call)) {}

  Status execute(const CallContext &, std::span<void *const> operands) noexcept override {
    double sum = 0;
    for (size_t i = 0; i < call_.counts.size(); ++i) {
      const auto *partials = static_cast<const double *>(operands[i]);
      for (int64_t k = 0; k < call_.counts[i]; k += call_.parts[i])
        sum += addPairwise(partials + k, call_.parts[i]);
    }
    *static_cast<double *>(operands[call_.counts.size()]) = std::sqrt(sum);
    return Status::success();
  }

private:
  GlobalNormCall call_;
};

} // namespace

std::unique_ptr<Kernel> makeGlobalNorm(const Invocation &invocation, const BuildOptions &) {
  return std::make_unique<GlobalNorm>(GlobalNormCall(Call(invocation)));
}

/// One number: there is nothing to make fast.
std::unique_ptr<Kernel> makeGlobalNormReference(const Invocation &invocation, const BuildOptions &options) {
  return makeGlobalNorm(invocation, options);
}

} // namespace ds::kernels
