//===- OperandsFirst.h - along what a value is made of --------------------===//
#pragma once

#include "mlir/IR/Operation.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SmallVector.h"

namespace ds {

/// Visits `value` and, before it, the operands of its op, and theirs, that are open, in their order. Only results of
/// ops are open, and none is any more once it was visited. A chain may be deeper than a thread's stack, so the walk has
/// one of its own.
inline void visitOperandsFirst(mlir::Value value, llvm::function_ref<bool(mlir::Value)> isOpen,
                               llvm::function_ref<void(mlir::Value)> visit) {
  llvm::SmallVector<mlir::Value> path = {value};
  while (!path.empty()) {
    const mlir::Value next = path.back();
    const size_t before = path.size();
    if (isOpen(next))
      for (mlir::Value operand : llvm::reverse(next.getDefiningOp()->getOperands()))
        if (isOpen(operand))
          path.push_back(operand);
    if (path.size() > before)
      continue;
    if (isOpen(next))
      visit(next);
    path.pop_back();
  }
}

} // namespace ds
