//===- SliceRules.h - what ranks keep of what they share out --------------===//
#pragma once

#include "compiler/check/RankMemory.h"
#include "compiler/check/schedule/Effects.h"

#include <cstddef>
#include <vector>

namespace ds::check {

/// A reduce_scatter in place leaves each rank the sum in its own slice, and beside it, in the slices of the others,
/// what it has handed over. Nothing may read that: a command that names its slice by the wrong stride would.
void forgetPartialSums(RankMemory &memory, size_t index);

/// Commands of the forward and backward read what was gathered of a parameter that is shared out, not a rank's share.
void requireGathered(const RankMemory &memory, const std::vector<Effect> &effects, size_t index);

} // namespace ds::check
