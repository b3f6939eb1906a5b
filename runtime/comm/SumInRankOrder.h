//===- SumInRankOrder.h - the one order of a sum over ranks ---------------===//
#pragma once

#include "core/DType.h"

#include <cstddef>
#include <cstdint>
#include <span>

namespace ds::runtime {

/// target = ((addends[0] + addends[1]) + addends[2]) + ..., element by element; with `accumulate` the target's old
/// value stands before addends[0]. F32, F64 or I64 (which wraps); BF16 or F16, summed in float32 and rounded once. The
/// target may be one of the addends.
void sumInRankOrder(DType dtype, std::span<const std::byte *const> addends, std::byte *target, uint64_t count,
                    bool accumulate) noexcept;

} // namespace ds::runtime
