//===- Gradients.h - what the gradient builders share ---------------------===//
#pragma once

#include "dialects/Train/Train.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace ds::train {

inline mlir::RankedTensorType tensorType(mlir::Value value) {
  return mlir::cast<mlir::RankedTensorType>(value.getType());
}

/// A rank-0 constant of `like`'s element type.
mlir::Value scalar(mlir::ImplicitLocOpBuilder &builder, mlir::Value like, double value);

/// The value of all elements of a float constant, if `value` is one and they are equal.
std::optional<double> splatOf(mlir::Value value);

/// The gradient of a broadcast: sums `gradient` over the dimensions along which a value of shape `shape` was repeated.
mlir::Value sumTo(mlir::ImplicitLocOpBuilder &builder, mlir::Value gradient, llvm::ArrayRef<int64_t> shape);

/// `value` in shape `shape`; no op when it has it already.
mlir::Value reshapeTo(mlir::ImplicitLocOpBuilder &builder, mlir::Value value, llvm::ArrayRef<int64_t> shape);

} // namespace ds::train
