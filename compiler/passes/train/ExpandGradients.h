//===- ExpandGradients.h - train.gradient becomes the backward pass ---------===//
#pragma once

#include "dialects/Train/Train.h"

#include "mlir/IR/Builders.h"

namespace ds {

/// Replaces `op` by the ops that carry `seed`, the gradient of its y, back to its xs.
llvm::LogicalResult expandGradient(train::GradientOp op, mlir::Value seed);

/// A float constant of `type` with equal elements.
mlir::Value filled(mlir::OpBuilder &builder, mlir::Location location, mlir::Type type, double value);

} // namespace ds
