//===- Recompute.h - what the passes that recompute agree on ------------------===//
#pragma once

#include "llvm/ADT/StringRef.h"

namespace ds {

/// Unit attribute of an op of the forward: the backward computes its results again instead of keeping them. Written by
/// ds-choose-recompute, or by hand. Where that is asked to number levels, an i64: the least that has the op.
inline constexpr llvm::StringLiteral recomputeAttribute = "train.recompute";
/// Unit attribute of such a copy: it is no common subexpression.
inline constexpr llvm::StringLiteral recomputedAttribute = "train.recomputed";
/// Module attribute, #train.recompute_summary: what ds-choose-recompute has chosen.
inline constexpr llvm::StringLiteral recomputeSummaryAttribute = "train.recompute_summary";

} // namespace ds
