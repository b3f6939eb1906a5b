//===- Distribution.h - what is alike on all ranks ------------------------===//
//
// A value is replicated (the same bytes on every rank), each rank's own (it follows from samples, or from random
// numbers of micro-batches), a slice, or a partial sum. Slices are followed by where they begin in their value, partial
// sums by their contributions (ShadowMemory.h). Here: replicated or each rank's own. Only collectives make one of the
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

/// Whether the ranks of a communicator are those that samples are dealt out to, no others: it joins the batch axes, and
/// as many ranks along another axis are not these.
bool joinsDataRanks(const proto::Plan &plan, uint32_t communicator);

/// Marks in what a command writes, by effect, which is each rank's own.
void distribute(RankMemory &memory, const std::vector<Effect> &effects,
                std::vector<std::vector<OperandSegment>> &written, size_t index);

} // namespace ds::check
