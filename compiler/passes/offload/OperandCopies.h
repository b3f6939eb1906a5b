//===- OperandCopies.h - operands of commands in another memory -----------===//
#pragma once

#include "dialects/Plan/Plan.h"

#include "mlir/IR/Builders.h"

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/SmallVector.h"

#include <optional>

namespace ds {

/// The options of a pass that moves buffers away: `space` as a space other than the device's, or a failure after a
/// diagnostic, as for negative `leastBytes`.
llvm::FailureOr<plan::MemorySpace> spaceAway(mlir::ModuleOp module, llvm::StringRef space, int64_t leastBytes);

/// The space of a buffer's arena, which has its name until ds-assign-offsets.
plan::MemorySpace spaceOf(mlir::Value buffer);

/// Gives the role the arena of a space, behind those of the spaces before it, unless it has one.
void makeArena(plan::RoleOp role, plan::MemorySpace space);

/// Moves buffers to a space, with its arena and that of host memory, through which it is reached. Returns them.
llvm::SetVector<mlir::Operation *> moveBuffers(plan::RoleOp role, plan::MemorySpace space,
                                               llvm::function_ref<bool(plan::BufferOp)> leaves);

/// Whether a buffer of a category has at least `leastBytes`, lives as long as the plan, and is named by commands alone
/// that `mayName` it.
bool isStateOf(plan::BufferOp buffer, plan::Category category, int64_t leastBytes,
               llvm::function_ref<bool(mlir::Operation *)> mayName);

/// Whether a buffer is optimizer state that ds-offload-optimizer moves, whose updates the host makes: what is large,
/// and does not stay (ds-keep-optimizer-state).
bool isStateAway(plan::BufferOp buffer, int64_t leastBytes);

/// Whether a buffer is a parameter that ds-offload-parameters moves: what is large.
bool isParameterAway(plan::BufferOp buffer, int64_t leastBytes);

/// Of a kernel that reads and writes a parameter.
bool isUpdate(mlir::Operation *op);

/// Of a kernel that copies a gradient into state, where the next step's update reads it (ds-delay-updates).
bool isPendingCopy(mlir::Operation *op);

/// Whether a buffer is that state.
bool isPending(plan::BufferOp buffer);

/// Of a kernel that reads few rows of an operand: that one's index, else nothing. Where the operand lies in host memory
/// the host looks them up, and the rows alone come to the device.
std::optional<unsigned> lookedUpIn(plan::CommandOpInterface command);

/// The command of its routine before one that writes an operand of it last; null where none does.
mlir::Operation *lastWriter(plan::CommandOpInterface reader, unsigned index);

/// The op of a routine behind which the results of a command are there.
mlir::Operation *awaitOf(plan::CommandOpInterface command);

/// A buffer for operand `index` of a command alone, as long as its call lasts. `members`: where it goes.
mlir::Value makeBuffer(mlir::OpBuilder &members, plan::CommandOpInterface command, unsigned index,
                       plan::MemorySpace space);

/// Where a tensor lies: of ranks of a communicator, each `stride` bytes behind the one before.
struct TensorPlace {
  mlir::Value buffer;
  int64_t offset = 0, stride = 0;
  mlir::FlatSymbolRefAttr ranks = {};
};

/// Of operand `index` of a command.
TensorPlace placeOf(plan::CommandOpInterface command, unsigned index);
/// It lies there from now on.
void setOperand(plan::CommandOpInterface command, unsigned index, const TensorPlace &place);
/// Copies a tensor on the queue of a command, for which it is.
void copyTensor(mlir::OpBuilder &builder, plan::CommandOpInterface command, mlir::RankedTensorType type,
                const TensorPlace &from, const TensorPlace &to);

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
