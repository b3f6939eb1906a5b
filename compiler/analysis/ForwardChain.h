//===- ForwardChain.h - the forward as a sequence of units --------------------===//
#pragma once

#include "compiler/scheduling/PipelinePartition.h"
#include "dialects/Train/Train.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"

#include <algorithm>
#include <cstdint>

namespace ds {

/// The value that is computed, under reshapes.
inline mlir::Value underView(mlir::Value value) {
  while (auto reshape = value.getDefiningOp<train::ReshapeOp>())
    value = reshape.getInput();
  return value;
}

/// Of the whole tensor; a bool takes one.
inline int64_t bytesOf(mlir::Value value) {
  auto type = llvm::cast<mlir::RankedTensorType>(value.getType());
  return type.getNumElements() * int64_t(std::max(8U, type.getElementTypeBitWidth())) / 8;
}

/// Ops that compute nothing.
inline bool isViewOfState(mlir::Operation *op) {
  return llvm::isa<train::ReadOp, train::ReshapeOp, train::ConstantOp>(op);
}

/// The ops of @microbatch, before and from train.loss_gradient on. A *unit* is an op of the forward that computes
/// something which is worth to be kept: no view, and no cheap value that follows from graph inputs, constants and
/// buffers alone (masks, position tables), for these are repeated wherever they are needed.
class ForwardChain {
public:
  /// `microbatch` has one block; both outlive the chain.
  ForwardChain(mlir::func::FuncOp microbatch, const mlir::SymbolTable &symbols);

  llvm::SmallVector<mlir::Operation *> forward, backward, units;

  /// A variable that the forward changes, and the first and last unit that read or change it.
  struct CarriedState {
    mlir::StringAttr variable;
    int64_t first, last;
  };
  std::vector<CarriedState> carriedState() const;

  bool isRepeated(mlir::Operation *op) const { return repeated_.contains(op); }

  /// What the units cost and what crosses the positions between them: seconds of the cost model with those of the
  /// backward ops of their name, bytes of parameters and of results that the backward reads. One stage.
  scheduling::PartitionProblem problem() const;

  /// The last unit that reads a value, through views; -1: none.
  int64_t lastUse(mlir::Value value) const;
  /// Whether the backward reads a value, through views.
  bool isReadLater(mlir::Value value) const;

private:
  void findRepeated();
  void addState(scheduling::PartitionProblem &problem) const;
  void addCrossings(scheduling::PartitionProblem &problem) const;

  const mlir::SymbolTable &symbols_;
  llvm::DenseSet<mlir::Operation *> repeated_, later_; // looked up; later_: the backward
  llvm::DenseMap<mlir::Operation *, int64_t> index_;   // of units; looked up
};

} // namespace ds
