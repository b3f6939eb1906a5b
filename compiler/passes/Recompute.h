//===- Recompute.h - what the passes that recompute agree on ------------------===//
#pragma once

#include "llvm/ADT/StringRef.h"

namespace ds {

/// Unit attribute of an op of the forward: the backward computes its results again instead of keeping them. Written by
/// ds-choose-recompute, or by hand.
inline constexpr llvm::StringLiteral recomputeAttribute = "train.recompute";
/// Unit attribute of such a copy: it is no common subexpression.
inline constexpr llvm::StringLiteral recomputedAttribute = "train.recomputed";
/// Module attribute: how many levels ds-choose-recompute has.
inline constexpr llvm::StringLiteral recomputeLevelsAttribute = "train.recompute_levels";

} // namespace ds
