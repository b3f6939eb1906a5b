//===- LifeRules.h - uses lie within the lives of buffers -----------------===//
#pragma once

#include "compiler/check/RankMemory.h"

#include <cstddef>

namespace ds::check {

/// Refuses ("value") a use outside the life that the plan gives a buffer, by the order of calls and commands.
void requireAlive(const RankMemory &memory, const proto::Operand &operand, size_t index);

/// Refuses ("race") a use by another queue that may come before the first command of the buffer's life, or after its
/// last: whatever the timing, it must not.
void requireOrdered(const RankMemory &memory, const proto::Operand &operand, size_t index);

} // namespace ds::check
