//===- ReverseMode.h - gradients of straight-line code ----------------------===//
#pragma once

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"

#include "llvm/ADT/STLFunctionalExtras.h"

namespace ds {

/// Reverse-mode differentiation of a straight-line program (Griewank and Walther, "Evaluating derivatives", chapter 3).
/// Activity (which values depend on a leaf) prunes gradients nobody needs.
class ReverseMode {
public:
  /// `operations`: the forward pass, in program order. Gradients flow back to `leaves` and no further, and not through
  /// `fixed`.
  ReverseMode(llvm::ArrayRef<mlir::Operation *> operations, mlir::ValueRange leaves, mlir::ValueRange fixed = {});

  bool isActive(mlir::Value value) const { return active_.contains(value); }

  /// Appends at `builder` the ops that carry `seed`, the gradient of `value`, back. Calls `complete` with every leaf
  /// that a gradient reaches, once nothing more is to be added to it.
  llvm::LogicalResult run(mlir::OpBuilder &builder, mlir::Value value, mlir::Value seed,
                          llvm::function_ref<void(mlir::Value leaf, mlir::Value gradient)> complete);

private:
  void markActive();
  llvm::LogicalResult visit(mlir::OpBuilder &builder, mlir::Operation *op);
  void contribute(mlir::OpBuilder &builder, mlir::Value value, mlir::Value gradient);

  llvm::SmallVector<mlir::Operation *> operations_;
  llvm::SmallVector<mlir::Value> leaves_;
  // Looked up, never iterated.
  llvm::DenseSet<mlir::Value> isLeaf_, isFixed_, active_;
  llvm::DenseMap<mlir::Value, mlir::Value> gradients_;
};

/// Puts the input in the place of each value that stops gradients (StopGradient.h), once all are there.
void dropStopGradients(mlir::ModuleOp module);

} // namespace ds
