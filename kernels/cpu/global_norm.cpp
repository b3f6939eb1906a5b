// global_norm: norm = sqrt(sum of all partials), in operand order, then element order, in float64.
// torch.nn.utils.clip_grad_norm_'s total norm, on the partial sums that block_sum_squares wrote.
#include "kernels/cpu/Call.h"
#include "kernels/cpu/Factories.h"

#include <cmath>

namespace ds::kernels {

namespace {

class GlobalNorm : public Kernel {
public:
  explicit GlobalNorm(std::vector<int64_t> counts) : counts_(std::move(counts)) {}

  Status execute(const CallContext &, std::span<void *const> operands) noexcept override {
    double sum = 0;
    for (size_t i = 0; i < counts_.size(); ++i) {
      const auto *partials = static_cast<const double *>(operands[i]);
      for (int64_t k = 0; k < counts_[i]; ++k)
        sum += partials[k];
    }
    *static_cast<double *>(operands[counts_.size()]) = std::sqrt(sum);
    return Status::success();
  }

private:
  std::vector<int64_t> counts_; ///< elements of each operand but the last
};

} // namespace

std::unique_ptr<Kernel> makeGlobalNorm(const Invocation &invocation, const BuildOptions &) {
  const Call call(invocation);
  call.require(call.operandCount() >= 1, "needs the operand norm");
  const size_t partials = call.operandCount() - 1;
  std::vector<int64_t> counts;
  for (size_t i = 0; i < partials; ++i) {
    call.expectDType(i, DType::F64);
    counts.push_back(call.elements(i));
  }
  call.expectScalar(partials, DType::F64);
  return std::make_unique<GlobalNorm>(std::move(counts));
}

} // namespace ds::kernels
