//===- VariableUses.h - who writes a variable in one fragment ---------------===//
#pragma once

#include "dialects/Dist/Dist.h"

#include "llvm/ADT/DenseMap.h"

namespace ds {

/// What the ops of a fragment do to variables, by position.
class VariableUses {
public:
  explicit VariableUses(mlir::Block &block);

  /// Whether the value of `read`, or a reshape of it, is used after its variable has been written again. Then it is not
  /// the variable's memory.
  bool isReadOutlived(train::ReadOp read) const;

private:
  int64_t lastUse(mlir::Value value) const;

  // Looked up, never iterated.
  llvm::DenseMap<mlir::Operation *, int64_t> position_;
  llvm::DenseMap<mlir::StringAttr, llvm::SmallVector<int64_t>> writes_; // ascending
};

} // namespace ds
