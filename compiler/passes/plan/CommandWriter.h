//===- CommandWriter.h - commands of a routine, and the order of its queues ------===//
#pragma once

#include "compiler/analysis/InFlight.h"
#include "compiler/analysis/KernelSelection.h"
#include "compiler/passes/plan/Placement.h"

namespace ds {

/// What one command will be: its operands in order.
struct CommandParts {
  llvm::SmallVector<mlir::Value> buffers;
  llvm::SmallVector<int32_t> accesses;
  llvm::SmallVector<mlir::Attribute> types;
  llvm::SmallVector<int64_t> offsets, strides;

  void add(const Place &place, plan::Access access, mlir::Type type);
};

/// Writes commands. Those of the compute queue run in their order; a collective that was started runs on a queue of its
/// own, after the compute command before its start and before the one behind its done.
class CommandWriter {
public:
  /// Events go where `members` stands, into `role`; communicators before it.
  CommandWriter(mlir::SymbolTable &symbols, plan::RoleOp role, mlir::OpBuilder &members, Placement &placement)
      : symbols_(symbols), role_(role), members_(members), builder_(role.getContext()), placement_(placement) {}

  void beginRoutine(plan::RoutineOp routine);
  /// Waits for what is still under way.
  void endRoutine(plan::RoutineOp routine);

  void kernel(const KernelCall &call, const CommandParts &parts, mlir::Operation *op);
  void fill(const Place &place, mlir::RankedTensorType type, mlir::Location location);
  void copy(const Place &source, const Place &target, mlir::Type type, mlir::Location location);
  void feed(llvm::StringRef input, const Place &place, mlir::Type type, const Arrival &arrival,
            mlir::Location location);
  /// On the channel's queue, ahead of use.
  void receive(dist::ReceiveOp op, const CommandParts &parts, const Arrival &arrival);
  /// On the channel's queue, after the compute command before it and the messages `before`. State is compute's again at
  /// once: the next command waits.
  void send(dist::SendOp op, const CommandParts &parts, const Departure &departure, llvm::ArrayRef<std::string> before);
  /// `parts` as plan.collective wants them.
  void collective(dist::CollectiveOpInterface op, const CommandParts &parts);
  /// Likewise, from a `*_start`; `done` is its token's.
  void start(dist::CollectiveOpInterface op, const CommandParts &parts);
  void done(mlir::Value token);

  /// A command that does nothing, for a routine that has none to wait or signal.
  void join(mlir::Location location);
  void addWait(mlir::Operation *command, llvm::StringRef event, int64_t delay = 0);
  void addSignal(mlir::Operation *command, llvm::StringRef event);

private:
  /// A command on a queue of its own, and what it signals.
  struct Beside {
    std::string event;
    mlir::Operation *command;
  };

  void onCompute(mlir::Operation *command);
  void awaitDue(mlir::Operation *command);
  /// What the last compute command signals to queues that go on from there.
  std::string readySignal(mlir::Location location);
  mlir::Operation *writeCollective(dist::CollectiveOpInterface op, const CommandParts &parts, llvm::StringRef queue);
  mlir::ArrayAttr waitsFor(const Arrival &arrival);
  mlir::DenseI64ArrayAttr delaysOf(const Arrival &arrival);
  std::string makeEvent(llvm::StringRef name);
  mlir::FlatSymbolRefAttr communicator(mlir::StringAttr axis);
  mlir::FlatSymbolRefAttr name(llvm::StringRef symbol) {
    return mlir::FlatSymbolRefAttr::get(builder_.getContext(), symbol);
  }
  mlir::DenseI64ArrayAttr stridesOf(const CommandParts &parts);
  mlir::FlatSymbolRefAttr communicatorOf(const CommandParts &parts);
  mlir::DenseI64ArrayAttr noNumbers() { return builder_.getDenseI64ArrayAttr({}); }
  mlir::ArrayAttr nothing() { return builder_.getArrayAttr({}); }

  mlir::SymbolTable &symbols_;
  plan::RoleOp role_;
  mlir::OpBuilder &members_, builder_;
  Placement &placement_;
  mlir::Operation *last_ = nullptr; // command of the routine on the compute queue
  llvm::SmallVector<Beside> due_;   // what the next command on the compute queue waits for
  int64_t events_ = 0;
  // Looked up, never iterated.
  llvm::DenseMap<mlir::StringAttr, mlir::FlatSymbolRefAttr> communicators_; // by axis
  llvm::DenseMap<mlir::Operation *, std::string> ready_; // what commands of the routine signal to collectives
  llvm::DenseMap<mlir::Value, Beside> done_;             // by token
};

} // namespace ds
