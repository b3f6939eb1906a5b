//===- Distribution.h - what is alike on all ranks ------------------------===//
//
// Along each axis a value is replicated (the same bytes on every rank), varies (it follows from samples, or from random
// numbers of micro-batches), is a slice, or a partial sum. Slices are followed by where they begin in their value,
// partial sums by their contributions (ShadowMemory.h). Here: replicated or varying. Only collectives make one of the
// other.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "compiler/check/RankMemory.h"
#include "compiler/check/schedule/Effects.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace ds::check {

/// Marks what a command writes, by effect, with the axes along which it varies.
void distribute(RankMemory &memory, const std::vector<Effect> &effects,
                std::vector<std::vector<OperandSegment>> &written, size_t index);

} // namespace ds::check
