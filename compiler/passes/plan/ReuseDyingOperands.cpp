//===- ReuseDyingOperands.cpp - results over operands that are read last ----===//
//
// In-place execution, as XLA's buffer assignment shares a buffer between an instruction and an operand whose live range
// ends there. Commands are taken in their order. A result takes the bytes of an operand of its kernel if
//
//   - the kernel's row says that the one may lie over the other (kernels/Kernels.inc), and both are of one type and
//     shape and have a buffer to themselves;
//   - the operand is dead behind the command: nothing of the routine uses it later, and if it is a value that another
//     routine stored, no later call of the micro-batch does;
//   - the command writes the result's buffer first, and uses neither otherwise;
//   - one of the two is of the call alone: its uses are moved to the other's bytes.
//
// What a queue other than compute may still read or write is left alone: inputs, messages, collectives with a token,
// copies between memories, for whose end compute would wait. Events, which come later, order the rest.
//
// Fewer bytes are alive at every instant then, but where micro-batches overlap it is a search that finds their slots
// places, and it may do worse on what is left. There a role is laid out both ways, and takes the smaller arena; the
// gradient of the cross entropy lies over the logits in both.
//
//===----------------------------------------------------------------------===//
#include "compiler/analysis/InFlight.h"
#include "compiler/analysis/KernelSelection.h"
#include "compiler/passes/plan/Passes.h"
#include "compiler/passes/plan/RoleTrials.h"
#include "compiler/passes/plan/RoutineUses.h"
#include "dialects/Plan/Plan.h"

#include "llvm/Support/MathExtras.h"

namespace ds {
#define GEN_PASS_DEF_REUSEDYINGOPERANDS
#include "compiler/passes/plan/Passes.h.inc"
} // namespace ds

using namespace mlir;
using namespace ds;

namespace {

/// In the programs of a role: behind which routine nothing of the same micro-batch uses a value.
class LastReaders {
public:
  explicit LastReaders(plan::RoleOp role) {
    const SymbolTable members(role);
    llvm::DenseMap<Operation *, llvm::SmallSetVector<Operation *, 8>> values; // of scope slot, by routine; looked up
    for (auto routine : role.getOps<plan::RoutineOp>())
      for (auto command : routine.getOps<plan::CommandOpInterface>())
        for (Value operand : command.getBuffers())
          if (auto buffer = operand.getDefiningOp<plan::BufferOp>(); buffer.getScope() == plan::Scope::Slot)
            values[routine].insert(buffer);
    for (auto program : role.getOps<plan::ProgramOp>()) {
      llvm::DenseMap<std::pair<Operation *, int64_t>, Operation *> last; // by value and micro-batch; looked up
      for (auto call : program.getOps<plan::CallOp>()) {
        auto routine = members.lookup<plan::RoutineOp>(call.getRoutine());
        for (Operation *value : values[routine]) {
          Operation *&before = last[{value, int64_t(call.getMicrobatch())}];
          if (before)
            notLast_.insert({before, value});
          before = routine;
        }
      }
    }
  }

  bool isLast(plan::RoutineOp routine, plan::BufferOp value) const { return !notLast_.contains({routine, value}); }

private:
  llvm::DenseSet<std::pair<Operation *, Operation *>> notLast_; // routines and values; looked up
};

bool isLossGradient(StringRef kernel) { return kernel == "cross_entropy_grad" || kernel == "cross_entropy_with_grad"; }

/// One routine.
class DyingOperands {
public:
  DyingOperands(plan::RoutineOp routine, const LastReaders &readers)
      : routine_(routine), readers_(readers), uses_(routine) {}

  /// Results of all kernels, or of the gradient of the loss alone.
  void reuse(bool all) {
    for (auto kernel : routine_.getOps<plan::KernelOp>()) {
      if (!all && !isLossGradient(kernel.getKernel()))
        continue;
      auto command = cast<plan::CommandOpInterface>(kernel.getOperation());
      for (unsigned result = 0; result < command.getBuffers().size(); ++result)
        if (command.getAccess(result) == plan::Access::Write)
          placeOverOperand(command, invocationOf(kernel), result);
    }
  }

private:
  void placeOverOperand(plan::CommandOpInterface command, const kernels::Invocation &call, unsigned result) {
    for (unsigned operand = 0; operand < command.getBuffers().size(); ++operand) {
      if (command.getAccess(operand) != plan::Access::Read ||
          command.getTypes()[operand] != command.getTypes()[result] || !kernels::mayOverwrite(call, operand, result) ||
          !fills(command, operand) || !fills(command, result))
        continue;
      auto dying = command.getBuffers()[operand].getDefiningOp<plan::BufferOp>();
      auto made = command.getBuffers()[result].getDefiningOp<plan::BufferOp>();
      if (dying == made || dying.getArena() != made.getArena() || !usedOnce(command, dying) ||
          !usedOnce(command, made) || !diesAt(command, dying) || !isFirstWrite(command, made))
        continue;
      if (made.getScope() == plan::Scope::Call)
        return uses_.merge(made, dying);
      if (dying.getScope() == plan::Scope::Call)
        return uses_.merge(dying, made);
    }
  }

  /// Whether the operand's buffer holds nothing else.
  static bool fills(plan::CommandOpInterface command, unsigned index) {
    auto buffer = command.getBuffers()[index].getDefiningOp<plan::BufferOp>();
    return command.getRankStride(index) == 0 &&
           int64_t(buffer.getBytes()) == plan::tensorBytes(command.getTensor(index)) && buffer.getBytes() > 0 &&
           buffer.getCategory() != plan::Category::Inputs &&
           (buffer.getScope() == plan::Scope::Call || buffer.getScope() == plan::Scope::Slot);
  }

  static bool usedOnce(plan::CommandOpInterface command, plan::BufferOp buffer) {
    return llvm::count(command.getBuffers(), buffer.getBuffer()) == 1;
  }

  bool diesAt(plan::CommandOpInterface command, plan::BufferOp buffer) {
    if (buffer.getScope() == plan::Scope::Slot && !readers_.isLast(routine_, buffer))
      return false;
    return llvm::all_of(uses_.of(buffer), [&](const RoutineUse &use) {
      return use.position <= uses_.positionOf(command) && onCompute(use.command);
    });
  }

  /// The routine's first use of `buffer` is this write.
  bool isFirstWrite(plan::CommandOpInterface command, plan::BufferOp buffer) {
    return llvm::all_of(uses_.of(buffer), [&](const RoutineUse &use) {
      return use.position >= uses_.positionOf(command) &&
             (buffer.getScope() == plan::Scope::Slot || onCompute(use.command));
    });
  }

  /// Whether no other queue will run it.
  static bool onCompute(plan::CommandOpInterface command) {
    if (auto collective = dyn_cast<plan::CollectiveOp>(command.getOperation()))
      return !collective.getToken();
    if (isa<plan::CopyOp>(command.getOperation()))
      return arenaOf(command, 0) == arenaOf(command, 1);
    return isa<plan::KernelOp, plan::FillOp>(command.getOperation());
  }

  static FlatSymbolRefAttr arenaOf(plan::CommandOpInterface command, unsigned operand) {
    return command.getBuffers()[operand].getDefiningOp<plan::BufferOp>().getArenaAttr();
  }

  plan::RoutineOp routine_;
  const LastReaders &readers_;
  RoutineUses uses_;
};

struct ReuseDyingOperands : ds::impl::ReuseDyingOperandsBase<ReuseDyingOperands> {
  using ReuseDyingOperandsBase::ReuseDyingOperandsBase;

  void runOnOperation() override {
    if (alignment < 1 || !llvm::isPowerOf2_64(alignment)) {
      getOperation().emitError() << "alignment " << alignment.getValue() << " is not a power of two";
      return signalPassFailure();
    }
    for (auto role : llvm::to_vector(getOperation().getOps<plan::RoleOp>()))
      if (!overlapsMicrobatches(role))
        reuseDyingOperands(role, /*all=*/true);
      else if (failed(reuseIfSmaller(role)))
        return signalPassFailure();
  }

private:
  LogicalResult reuseIfSmaller(plan::RoleOp role) {
    const FailureOr<bool> all =
        RoleTrials(role, {.alignment = alignment, .patience = patience, .reuses = true, .reorders = reorders},
                   getAnalysis<KnownSolutions>())
            .reusesAll();
    if (failed(all))
      return failure();
    reuseDyingOperands(role, *all);
    return success();
  }
};

} // namespace

void ds::reuseDyingOperands(plan::RoleOp role, bool all) {
  const LastReaders readers(role);
  for (auto routine : role.getOps<plan::RoutineOp>())
    DyingOperands(routine, readers).reuse(all);
}

bool ds::overlapsMicrobatches(plan::RoleOp role) {
  const InFlight inFlight(role);
  return llvm::any_of(role.getOps<plan::BufferOp>(), [&](plan::BufferOp buffer) {
    return buffer.getScope() == plan::Scope::Slot && buffer.getCategory() != plan::Category::Inputs &&
           inFlight.slots(buffer) > 1;
  });
}
