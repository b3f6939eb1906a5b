//===- WrittenOperands.h - what a command writes --------------------------===//
#pragma once

#include "runtime/plan/plan.pb.h"

#include <vector>

namespace ds::runtime {

/// The operands that a command writes, in order. They are the plan's.
std::vector<const plan::proto::Operand *> writtenBy(const plan::proto::Command &command);

} // namespace ds::runtime
