//===- Effects.cpp - which bytes a command reads and writes ------------------===//
#include "compiler/check/schedule/Effects.h"

#include "core/DType.h"
#include "kernels/KernelTable.h"

#include <algorithm>
#include <string_view>

namespace ds::check {

std::vector<Effect> effectsOf(const proto::Command &command) {
  std::vector<Effect> effects;
  const auto add = [&](const proto::Operand &operand) {
    const auto access = operand.access();
    const bool isBoth = access == proto::Operand::READ_WRITE;
    effects.push_back({&operand, isBoth || access == proto::Operand::READ, isBoth || access == proto::Operand::WRITE,
                       access == proto::Operand::SCRATCH});
  };
  std::ranges::for_each(command.kernel().operands(), add); // none unless it is one; so below
  std::ranges::for_each(command.send().sources(), add);
  std::ranges::for_each(command.receive().targets(), add);
  if (command.has_fill())
    add(command.fill().target());
  if (command.has_copy())
    add(command.copy().source());
  if (command.has_copy())
    add(command.copy().target());
  if (command.has_feed())
    add(command.feed().target());
  for (const proto::CollectivePart &part : command.collective().parts()) {
    add(part.source());
    add(part.target());
    if (part.has_scratch())
      add(part.scratch());
  }
  return effects;
}

uint64_t elementBytes(proto::DType dtype) { return uint64_t(byteSize(*dtypeFromNumber(dtype))); }

uint64_t byteCount(const proto::Operand &operand) {
  uint64_t bytes = elementBytes(operand.dtype());
  for (int64_t dim : operand.shape())
    bytes *= uint64_t(dim);
  return bytes;
}

bool sums(const proto::CollectiveCommand &collective) {
  return collective.kind() == proto::CollectiveCommand::ALL_REDUCE ||
         collective.kind() == proto::CollectiveCommand::REDUCE_SCATTER;
}

bool isOptimizer(const proto::Command &command) {
  const kernels::KernelRow *row = command.has_kernel() ? kernels::findKernel(command.kernel().kernel()) : nullptr;
  return row && row->isOptimizer() && command.kernel().operands_size() >= 2;
}

/// The row of the kernel that runs an optimizer's update; null for other ops.
static const kernels::KernelRow *updateRow(const proto::ReferenceOp &op) {
  constexpr std::string_view prefix = "train.";
  if (!op.op().starts_with(prefix))
    return nullptr;
  const kernels::KernelRow *row = kernels::findKernel(std::string_view(op.op()).substr(prefix.size()));
  return row && row->isOptimizer() ? row : nullptr;
}

bool isOptimizer(const proto::ReferenceOp &op) { return updateRow(op); }

int clipOperandOf(const proto::ReferenceOp &op) { return int(updateRow(op)->clip()); }

} // namespace ds::check
