//===- RankParts.h - ranks along an axis have parts of values --------------===//
//
// What ranks have side by side is known in two ways: as one value, of which kernels know that each rank has a part, or
// as bytes of which each has its own. These turn one into the other, along axes other than that of micro-batches.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "compiler/check/RankMemory.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace ds::check {

/// What all ranks along `axes` have one behind another, if `own` is what this one has; of other values unless these are
/// their parts of one value, in their order.
Known sideBySide(const RankMemory &memory, plan::AxisSet axes, const std::vector<OperandSegment> &own);

/// What each rank has of `whole`, which all have side by side, `bytes` each: a part, of other values unless all of it
/// is one value. Nothing where bytes are followed instead: along the axis of micro-batches.
std::optional<Contents> partOfEach(const RankMemory &memory, plan::AxisSet axes,
                                   const std::vector<OperandSegment> &whole, uint64_t bytes);

} // namespace ds::check
