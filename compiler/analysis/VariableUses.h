//===- VariableUses.h - who reads and writes a variable in one block --------===//
#pragma once

#include "dialects/Train/Train.h"

#include "llvm/ADT/DenseMap.h"

namespace ds {

/// What the ops of a straight-line block do to variables, by position.
class VariableUses {
public:
  explicit VariableUses(mlir::Block &block);

  /// Whether just one op of the block names the variable.
  bool isNamedOnce(mlir::StringAttr variable) const { return mentions_.lookup(variable) == 1; }

  /// Whether the value of `read`, or a reshape of it, is used after its variable has been written again. Then it is not
  /// the variable's memory.
  bool isReadOutlived(train::ReadOp read) const;

private:
  int64_t lastUse(mlir::Value value) const;

  // Looked up, never iterated.
  llvm::DenseMap<mlir::Operation *, int64_t> position_;
  llvm::DenseMap<mlir::StringAttr, int64_t> mentions_;
  llvm::DenseMap<mlir::StringAttr, llvm::SmallVector<int64_t>> writes_; // ascending
};

} // namespace ds
