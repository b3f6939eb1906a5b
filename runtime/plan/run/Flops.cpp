//===- Flops.cpp - what a step computes -----------------------------------===//
#include "runtime/plan/run/Flops.h"

#include "core/CostModel.h"
#include "core/DType.h"
#include "kernels/CallWork.h"
#include "kernels/KernelTable.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <vector>

namespace ds::plan {
namespace {

std::vector<kernels::TensorType> tensorsOf(const proto::Plan &plan,
                                           const google::protobuf::RepeatedField<uint32_t> &values) {
  std::vector<kernels::TensorType> tensors;
  for (uint32_t index : values) {
    const proto::ReferenceValue &value = plan.reference().values(int(index));
    tensors.push_back({DType(value.dtype()), Shape(value.shape().begin(), value.shape().end())});
  }
  return tensors;
}

/// Of the kernel of the op's name, without what a gradient computes again: attention's scores.
uint64_t flopsOf(const proto::Plan &plan, const proto::ReferenceOp &op) {
  constexpr std::string_view prefix = "train.";
  const kernels::KernelRow *kernel =
      op.op().starts_with(prefix) ? kernels::findKernel(std::string_view(op.op()).substr(prefix.size())) : nullptr;
  if (!kernel)
    return 0;
  const auto reads = tensorsOf(plan, op.operands()), writes = tensorsOf(plan, op.results());
  const kernels::CallTypes call(*kernel, reads, writes);
  return uint64_t(kernels::flopsOf(kernel->name, call) - kernels::repeatedFlopsOf(kernel->name, call));
}

/// Times the micro-batches, for what every micro-batch does.
uint64_t flopsPerStep(const proto::Plan &plan, const proto::ReferenceOp &op) {
  const uint64_t times =
      op.function() == "microbatch" ? plan.training().accumulation_steps() : op.function() == "update";
  return times == 0 ? 0 : times * flopsOf(plan, op);
}

bool hasFlag(const proto::KernelCommand &kernel, std::string_view name) {
  return std::ranges::any_of(kernel.attributes(), [&](const proto::Attribute &attribute) {
    return attribute.name() == name && attribute.integer() != 0;
  });
}

/// What `answer` says of a command's row and call; `none` of names that are no kernel's.
template <typename Result, typename Answer>
Result ofCall(const proto::KernelCommand &kernel, Result none, const Answer &answer) {
  const kernels::KernelRow *row = kernels::findKernel(kernel.kernel());
  if (!row)
    return none;
  std::vector<kernels::TensorType> reads, writes;
  for (const proto::Operand &operand : kernel.operands())
    if (operand.access() != proto::Operand::SCRATCH)
      (operand.access() == proto::Operand::WRITE ? writes : reads)
          .push_back({DType(operand.dtype()), Shape(operand.shape().begin(), operand.shape().end())});
  return answer(*row, kernels::CallTypes(*row, reads, writes, hasFlag(kernel, "causal")));
}

} // namespace

double flopsOf(const proto::KernelCommand &kernel) {
  return ofCall(kernel, 0.0, [](const kernels::KernelRow &row, const kernels::CallTypes &call) {
    return kernels::flopsOf(row.name, call.withoutCausal());
  });
}

Work workOf(const proto::KernelCommand &kernel, double operandBytes) {
  const unsigned bits = kernel.operands_size() == 0 ? 32 : unsigned(8 * byteSize(DType(kernel.operands(0).dtype())));
  return ofCall(kernel, Work{.bytes = operandBytes},
                [&](const kernels::KernelRow &row, const kernels::CallTypes &call) {
                  return kernels::workOf(row, call, operandBytes, bits, hasFlag(kernel, "tf32"));
                });
}

uint64_t matmulFlopsPerStep(const proto::Plan &plan) {
  uint64_t sum = 0;
  for (const proto::ReferenceOp &op : plan.reference().ops())
    sum += flopsPerStep(plan, op);
  return sum;
}

uint64_t matmulFlopsPerStep(const proto::Plan &plan, const proto::Role &role) {
  if (plan.roles_size() == 1)
    return matmulFlopsPerStep(plan);
  std::set<uint32_t> ops; // an op that several commands implement counts once
  for (const proto::Routine &routine : role.routines())
    for (const proto::Command &command : routine.commands())
      ops.insert(command.reference().begin(), command.reference().end());
  uint64_t sum = 0;
  for (uint32_t op : ops)
    sum += flopsPerStep(plan, plan.reference().ops(int(op)));
  return sum;
}

uint64_t recomputeFlopsPerStep(const proto::Plan &plan, const proto::Role &role) {
  std::set<uint32_t> done;
  uint64_t sum = 0;
  for (const proto::Routine &routine : role.routines())
    for (const proto::Command &command : routine.commands())
      for (uint32_t op : command.reference())
        if (!done.insert(op).second)
          sum += flopsPerStep(plan, plan.reference().ops(int(op)));
  return sum;
}

} // namespace ds::plan
