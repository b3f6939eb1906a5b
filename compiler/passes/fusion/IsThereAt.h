//===- IsThereAt.h - whether an op may read a value where it stands --------===//
#pragma once

#include "mlir/IR/Operation.h"

namespace ds {

/// Whether a value is there when an op runs that is to read it.
inline bool isThereAt(mlir::Value value, mlir::Operation *op) {
  mlir::Operation *source = value.getDefiningOp();
  return !source || source->getBlock() != op->getBlock() || source->isBeforeInBlock(op);
}

} // namespace ds
