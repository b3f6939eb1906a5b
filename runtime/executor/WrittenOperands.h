//===- WrittenOperands.h - what a command writes --------------------------===//
#pragma once

#include "runtime/plan/plan.pb.h"

#include <cstdint>
#include <vector>

namespace ds::runtime {

/// The operands that a command writes, in order. They are the plan's.
std::vector<const plan::proto::Operand *> writtenBy(const plan::proto::Command &command);

/// The operands that a kernel reads, in order.
std::vector<const plan::proto::Operand *> readBy(const plan::proto::KernelCommand &command);

} // namespace ds::runtime
