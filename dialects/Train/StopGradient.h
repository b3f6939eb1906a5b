//===- StopGradient.h - values that no gradient passes ----------------------===//
#pragma once

#include "dialects/Train/Train.h"

namespace ds::train {

/// Of a train.cast to the type that its input has: the input, which no gradient passes. Cf. torch.Tensor.detach. No
/// folding looks through it; dropStopGradients takes it away once all gradients are there.
inline constexpr llvm::StringLiteral stopGradientAttribute = "train.stop_gradient";

inline bool stopsGradient(mlir::Operation *op) { return op->hasAttr(stopGradientAttribute); }

/// Of a train.store of what the forward makes of a buffer: an evaluation, which stores nothing, reads the buffer where
/// training reads that.
inline constexpr llvm::StringLiteral keptInEvaluation = "train.kept_in_evaluation";

/// Of a train.select: training takes its first value, an evaluation the second.
inline constexpr llvm::StringLiteral byModeAttribute = "train.by_mode";

} // namespace ds::train
