// global_norm: norm = sqrt(sum of all partials), in operand order, then element order, in float64. Partials of blocks
// of less than 1024 elements are first added to those of 1024, so that the norm does not depend on the blocks.
// torch.nn.utils.clip_grad_norm_'s total norm, on the partial sums that block_sum_squares wrote.
#include "kernels/cpu/Call.h"
#include "kernels/cpu/Factories.h"
#include "kernels/cpu/block_sum_squares.h"

#include <cmath>

namespace ds::kernels {

namespace {

class GlobalNorm : public Kernel {
public:
  GlobalNorm(std::vector<int64_t> counts, std::vector<int64_t> parts)
      : counts_(std::move(counts)), parts_(std::move(parts)) {}

  Status execute(const CallContext &, std::span<void *const> operands) noexcept override {
    double sum = 0;
    for (size_t i = 0; i < counts_.size(); ++i) {
      const auto *partials = static_cast<const double *>(operands[i]);
      for (int64_t k = 0; k < counts_[i]; k += parts_[i])
        sum += addPairwise(partials + k, parts_[i]);
    }
    *static_cast<double *>(operands[counts_.size()]) = std::sqrt(sum);
    return Status::success();
  }

private:
  std::vector<int64_t> counts_; ///< elements of each operand but the last
  std::vector<int64_t> parts_;  ///< of them, how many make a block
};

} // namespace

std::unique_ptr<Kernel> makeGlobalNorm(const Invocation &invocation, const BuildOptions &) {
  const Call call(invocation);
  call.require(call.operandCount() >= 1, "needs the operand norm");
  const size_t partials = call.operandCount() - 1;
  const std::vector<int64_t> blocks = call.integers("blocks");
  call.require(blocks.size() == partials, "'blocks' must have a number for each operand but the last");
  std::vector<int64_t> counts, parts;
  for (size_t i = 0; i < partials; ++i) {
    call.expectDType(i, DType::F64);
    call.require(isSumSquaresBlock(blocks[i]), "'blocks' must be powers of two from 64 to 1024");
    counts.push_back(call.elements(i));
    parts.push_back(sumSquaresBlock / blocks[i]);
    call.require(counts.back() % parts.back() == 0, "operands must make whole blocks of 1024");
  }
  call.expectScalar(partials, DType::F64);
  return std::make_unique<GlobalNorm>(std::move(counts), std::move(parts));
}

} // namespace ds::kernels
