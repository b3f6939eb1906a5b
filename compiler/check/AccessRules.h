//===- AccessRules.h - races, and values that are still there -------------===//
#pragma once

#include "compiler/check/RankMemory.h"
#include "compiler/check/schedule/Effects.h"

#include <cstddef>
#include <vector>

namespace ds::check {

/// A command may write where it reads only in place: a kernel the very bytes of one operand, a collective a slice.
/// Refuses ("race") other overlaps.
void requireNoOverlap(const RankMemory &memory, const std::vector<Effect> &effects, size_t index);

/// An instance reads an operand: what it reads must be there, for its micro-batch or call ("value"), and no other queue
/// may write it meanwhile ("race").
void read(RankMemory &memory, const proto::Operand &operand, size_t index);

/// An instance writes an operand, or leaves its scratch in it: no other queue may use these bytes meanwhile ("race"),
/// and only a step changes state ("coverage"). From then on they hold `contents`.
void write(RankMemory &memory, const proto::Operand &operand, const Contents &contents, size_t index);

} // namespace ds::check
