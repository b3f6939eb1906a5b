//===- OperandCopies.h - operands of commands in another memory -----------===//
#pragma once

#include "dialects/Plan/Plan.h"

#include "mlir/IR/Builders.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SmallVector.h"

namespace ds {

/// The options of a pass that moves buffers away: `space` as a space other than the device's, or a failure after a
/// diagnostic, as for negative `leastBytes`.
llvm::FailureOr<plan::MemorySpace> spaceAway(mlir::ModuleOp module, llvm::StringRef space, int64_t leastBytes);

/// The space of a buffer's arena, which has its name until ds-assign-offsets.
plan::MemorySpace spaceOf(mlir::Value buffer);

/// Moves buffers of a category to a space, with its arena and that of host memory, through which it is reached: those
/// of at least `leastBytes` that live as long as the plan, and that only commands name which `may`. Returns them.
llvm::DenseSet<mlir::Operation *> moveBuffers(plan::RoleOp role, plan::MemorySpace space, plan::Category category,
                                              int64_t leastBytes, llvm::function_ref<bool(mlir::Operation *)> may);

/// A buffer for operand `index` of a command alone, as long as its call lasts. `members`: where it goes.
mlir::Value makeBuffer(mlir::OpBuilder &members, plan::CommandOpInterface command, unsigned index,
                       plan::MemorySpace space);

/// Copies operand `index` of a command: `from` or `to` is its own buffer, of which the tensor may be a part, and the
/// other holds the tensor alone. Before setBuffers.
void copyOperand(mlir::OpBuilder &builder, plan::CommandOpInterface command, unsigned index, mlir::Value from,
                 mlir::Value to);
/// Copies a tensor between buffers that hold it alone, for operand `index` of a command.
void copyWhole(mlir::OpBuilder &builder, plan::CommandOpInterface command, unsigned index, mlir::Value from,
               mlir::Value to);

/// The command uses other buffers; those that are new hold their tensor alone.
void setBuffers(plan::CommandOpInterface command, llvm::ArrayRef<mlir::Value> buffers);

} // namespace ds
