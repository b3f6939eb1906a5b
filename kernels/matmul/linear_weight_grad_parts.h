//===- linear_weight_grad_parts.h - linear_weight_grad by two kernels -----===//
#pragma once

#include "kernels/matmul/linear_weight_grad_call.h"

#include <array>
#include <memory>

namespace ds::kernels {

/// The product by one kernel, then the sums by another; the workspace is each one's in turn.
class LinearWeightGradParts final : public Kernel {
public:
  /// `matmul` and `reduceSum` make the kernels of a device.
  LinearWeightGradParts(const LinearWeightGradCall &call, Factory matmul, Factory reduceSum,
                        const BuildOptions &options)
      : call_(call), product_(matmul(call.product, options)), sums_(reduceSum(call.sums, options)) {}

  Status execute(const CallContext &context, std::span<void *const> operands) noexcept override {
    using Parts = LinearWeightGradCall;
    void *const workspace = call_.workspace.at(operands);
    const std::array<void *, 4> product{operands[call_.a()], operands[call_.b()], operands[Parts::dw], workspace};
    const size_t behind = workspace ? 1 : 0;
    if (Status status = product_->execute(context, std::span(product).first(3 + behind)); !status.ok())
      return status;
    const std::array<void *, 3> sums{operands[Parts::dy], operands[Parts::db], workspace};
    return sums_->execute(context, std::span(sums).first(2 + behind));
  }

private:
  LinearWeightGradCall call_;
  std::unique_ptr<Kernel> product_, sums_;
};

} // namespace ds::kernels
