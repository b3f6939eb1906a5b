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

/// Marks what a command writes with the axes along which it varies, by what it reads; both by effect.
void distribute(const RankMemory &memory, const std::vector<Contents> &read, std::vector<Contents> &written,
                size_t index);

} // namespace ds::check
