//===- Effects.cpp - which bytes a command reads and writes ------------------===//
#include "compiler/check/schedule/Effects.h"

#include "core/DType.h"
#include "kernels/KernelTable.h"

#include <string_view>

namespace ds::check {

namespace {

Effect effectOf(const proto::Operand &operand) {
  const auto access = operand.access();
  return {&operand, access == proto::Operand::READ || access == proto::Operand::READ_WRITE,
          access == proto::Operand::WRITE || access == proto::Operand::READ_WRITE, access == proto::Operand::SCRATCH};
}

} // namespace

std::vector<Effect> effectsOf(const proto::Command &command) {
  std::vector<Effect> effects;
  switch (command.kind_case()) {
  case proto::Command::kKernel:
    for (const proto::Operand &operand : command.kernel().operands())
      effects.push_back(effectOf(operand));
    break;
  case proto::Command::kFill:
    effects.push_back(effectOf(command.fill().target()));
    break;
  case proto::Command::kCopy:
    effects.push_back(effectOf(command.copy().source()));
    effects.push_back(effectOf(command.copy().target()));
    break;
  case proto::Command::kFeed:
    effects.push_back(effectOf(command.feed().target()));
    break;
  case proto::Command::kCollective:
    for (const proto::CollectivePart &part : command.collective().parts()) {
      effects.push_back(effectOf(part.source()));
      effects.push_back(effectOf(part.target()));
      if (part.has_scratch())
        effects.push_back(effectOf(part.scratch()));
    }
    break;
  case proto::Command::kSend:
    for (const proto::Operand &operand : command.send().sources())
      effects.push_back(effectOf(operand));
    break;
  case proto::Command::kReceive:
    for (const proto::Operand &operand : command.receive().targets())
      effects.push_back(effectOf(operand));
    break;
  case proto::Command::KIND_NOT_SET:
    break;
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
