//===- NormRules.h - the norm of gradients that ranks share out -----------===//
//
// Each rank sums the squares of its slice of a bucket, block by block; an all_gather brings the sums of all together,
// and the norm views those of each gradient where they lie. The reference program knows whole gradients alone. So these
// sums of squares name no op: what they are follows here from the bytes that they are made of. Where ranks along
// another axis have parts of a gradient, those of each part come together by an all_gather along that axis.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "compiler/check/RankMemory.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace ds::check {

/// What a block_sum_squares puts into its result, of what it finds in its operand.
Contents sumsOfSquares(const RankMemory &memory, const Contents &gradient, size_t index);

/// A norm is of all gradients that its op names, in this order, each whole and once: its operand i holds the sums of
/// squares of the op's, in blocks or in parts of blocks, or those of all parts that ranks have of it. Throws Mismatch.
/// `held`: by operand.
void requireNorm(RankMemory &memory, std::span<const uint32_t> held, size_t index);

} // namespace ds::check
