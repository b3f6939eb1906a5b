//===- CommandWriter.h - commands of a routine, all on the compute queue ---------===//
#pragma once

#include "compiler/passes/plan/RoleBuffers.h"

namespace ds {

/// What one command will be: its operands in order.
struct CommandOperands {
  llvm::SmallVector<mlir::Value> buffers;
  llvm::SmallVector<int32_t> accesses;
  llvm::SmallVector<mlir::Attribute> types;
  llvm::SmallVector<int64_t> offsets, strides;

  void add(const BufferView &view, plan::Access access, mlir::Type type);
};

/// Writes the commands of a role, one after another, on its compute queue; ds-order-queues gives others to those that
/// can run beside compute.
class CommandWriter {
public:
  /// Communicators, made at their first use, go before `role`.
  CommandWriter(mlir::SymbolTable &symbols, plan::RoleOp role)
      : symbols_(symbols), role_(role), builder_(role.getContext()) {}

  void beginRoutine(plan::RoutineOp routine);

  /// `op` is what the command implements.
  void kernel(mlir::StringAttr kernel, mlir::DictionaryAttr arguments, const CommandOperands &operands,
              mlir::Operation *op);
  void fill(const BufferView &view, mlir::RankedTensorType type, mlir::Location location);
  /// Between memory spaces; within one a kernel copies.
  void copy(const BufferView &source, const BufferView &target, mlir::Type type, mlir::Location location);
  void feed(mlir::StringAttr input, const BufferView &view, mlir::Type type, mlir::Location location);
  void receive(dist::ReceiveOp op, const CommandOperands &operands);
  void send(dist::SendOp op, const CommandOperands &operands);
  /// Operands as plan.collective wants them. From a `*_start` it has a token, which is returned; else null.
  mlir::Value collective(dist::CollectiveOpInterface op, const CommandOperands &operands);
  void await(mlir::Value token, mlir::Location location);

  /// The ranks along an axis; made at the first use.
  mlir::FlatSymbolRefAttr communicator(mlir::StringAttr axis);

private:
  template <typename CommandOp, typename... Extra>
  CommandOp write(mlir::Location location, mlir::TypeRange results, const CommandOperands &operands,
                  mlir::FlatSymbolRefAttr communicator, mlir::DenseI64ArrayAttr reference, Extra... extra);
  mlir::FlatSymbolRefAttr communicatorOf(const CommandOperands &operands);

  mlir::SymbolTable &symbols_;
  plan::RoleOp role_;
  mlir::OpBuilder builder_;
  llvm::DenseMap<mlir::StringAttr, mlir::FlatSymbolRefAttr> communicators_; // by axis; looked up, never iterated
};

} // namespace ds
