//===- TrainStep.h - names that the passes over a training step agree on ----===//
#pragma once

#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/Twine.h"

#include <string>

namespace ds {

// Metrics, as ds-run prints them.
inline constexpr llvm::StringLiteral lossMetric = "loss";
inline constexpr llvm::StringLiteral gradientNormMetric = "grad_norm";
inline constexpr llvm::StringLiteral learningRateMetric = "lr";
inline constexpr llvm::StringLiteral lossScaleMetric = "loss_scale";
inline constexpr llvm::StringLiteral skippedMetric = "skipped";
/// Labels that count, where losses are weighed by them (ds-count-targets).
inline constexpr llvm::StringLiteral targetsMetric = "targets";

/// Symbols that passes over a step make; a model's variables have other names.
inline constexpr llvm::StringLiteral reservedNames[] = {
    "microbatch",       "update",           "evaluate",      "reference",   "feed",
    "forward",          "backward",         "mesh",          "main",        lossMetric,
    gradientNormMetric, learningRateMetric, lossScaleMetric, skippedMetric, targetsMetric};

/// Optimizer steps done, a scalar i64.
inline constexpr llvm::StringLiteral stepVariable = "optimizer::step";
/// Of fp16: what losses' gradients are multiplied by, a scalar f32; steps without an overflow since the last one or
/// since the scale was doubled, and overflows until it is halved, scalars i64.
inline constexpr llvm::StringLiteral lossScaleVariable = "optimizer::loss_scale";
inline constexpr llvm::StringLiteral cleanStepsVariable = "optimizer::loss_scale_clean_steps";
inline constexpr llvm::StringLiteral hysteresisVariable = "optimizer::loss_scale_hysteresis";

/// Of delayed updates (ds-delay-updates): the gradient, and a scalar, of the step before.
inline std::string pendingName(llvm::StringRef parameter) { return (parameter + "::pending").str(); }
inline std::string pendingScalarName(llvm::StringRef scalar) { return ("optimizer::pending_" + scalar).str(); }

inline std::string gradientName(llvm::StringRef parameter) { return (parameter + "::gradient").str(); }
inline std::string firstMomentName(llvm::StringRef parameter) { return (parameter + "::exp_avg").str(); }
inline std::string secondMomentName(llvm::StringRef parameter) { return (parameter + "::exp_avg_sq").str(); }
inline std::string squareSumName(llvm::StringRef parameter) { return (parameter + "::sum").str(); }
inline std::string momentumName(llvm::StringRef parameter) { return (parameter + "::momentum_buffer").str(); }

/// Attribute of an op: the ops of the reference program that it implements (array<i64>).
inline constexpr llvm::StringLiteral referenceAttribute = "train.reference";
/// Module attribute: the reference program, a module without effect on anything.
inline constexpr llvm::StringLiteral referenceModule = "reference";

/// Unit attribute of @forward: it holds the training algorithm that the model file brought.
inline constexpr llvm::StringLiteral algorithmAttribute = "train.algorithm";

// Argument attributes of @forward, @microbatch and @evaluate.
inline constexpr llvm::StringLiteral inputAttribute = "train.input";
inline constexpr llvm::StringLiteral tokensAttribute = "train.tokens";
inline constexpr llvm::StringLiteral limitAttribute = "train.limit";
inline constexpr llvm::StringLiteral ignoredAttribute = "train.ignored";

} // namespace ds
