//===- cross_entropy_with_grad.h - a loss and its gradient, one after the other --===//
#pragma once

#include "kernels/Call.h"

#include <array>

namespace ds::kernels {

/// On a CPU the two kernels run as they are: a step waits for products there, not for memory.
class CrossEntropyWithGrad : public Kernel {
public:
  /// `loss` and `gradient` make the kernels of the two parts.
  CrossEntropyWithGrad(const Invocation &both, const BuildOptions &options, Factory loss, Factory gradient)
      : loss_(loss(partOf(both, "cross_entropy", ofLoss), options)),
        gradient_(gradient(partOf(both, "cross_entropy_grad", ofGradient), options)) {}

  Status execute(const CallContext &context, std::span<void *const> operands) noexcept override {
    if (Status status = loss_->execute(context, pick(operands, ofLoss)); !status.ok())
      return status;
    return gradient_->execute(context, pick(operands, ofGradient));
  }

private:
  /// Operands of the two kernels: logits, labels, loss, lse; logits, labels, lse, dloss, dlogits.
  static constexpr std::array<size_t, 4> ofLoss = {0, 1, 3, 4};
  static constexpr std::array<size_t, 5> ofGradient = {0, 1, 4, 2, 5};

  template <size_t count>
  static Invocation partOf(const Invocation &both, const char *kernel, const std::array<size_t, count> &indices) {
    Invocation part{kernel, {}, both.attributes};
    for (const size_t index : indices)
      part.operands.push_back(both.operands.at(index));
    return part;
  }
  template <size_t count>
  static std::array<void *, count> pick(std::span<void *const> operands, const std::array<size_t, count> &indices) {
    std::array<void *, count> part;
    for (size_t i = 0; i < count; ++i)
      part[i] = operands[indices[i]];
    return part;
  }

  std::unique_ptr<Kernel> loss_, gradient_;
};

} // namespace ds::kernels
