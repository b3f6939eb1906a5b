//===- MeaningRules.h - commands compute what they are said to ------------===//
#pragma once

#include "compiler/check/RankMemory.h"
#include "compiler/check/meaning/Meaning.h"
#include "compiler/check/schedule/Effects.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace ds::check {

/// What a command gives its operands, by effect, as `read` what they hold. Refuses ("meaning") a command that does not
/// do what its reference ops say of the values that lie in its operands, and ("coverage") gradients that are not
/// complete.
std::vector<Meaning::Result> requireMeaning(RankMemory &memory, const std::vector<Effect> &effects,
                                            const std::vector<Contents> &read, size_t index);

/// What the variable of an op that counts micro-batches (StateChanges.h) holds when a command has taken its own into
/// `before`. Refuses ("coverage") where just those before it are not there, in the order in which one rank adds them
/// up.
uint32_t withMicrobatch(const RankMemory &memory, const proto::ReferenceOp &op, uint32_t before, size_t index);

} // namespace ds::check
