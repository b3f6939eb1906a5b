//===- SliceRules.h - what ranks keep of sums that they share out ---------===//
#pragma once

#include "compiler/check/RankMemory.h"

#include <cstddef>

namespace ds::check {

/// A reduce_scatter in place leaves each rank the sum in its own slice, and beside it, in the slices of the others,
/// what it has handed over. Nothing may read that: a command that names its slice by the wrong stride would.
void forgetPartialSums(RankMemory &memory, size_t index);

} // namespace ds::check
