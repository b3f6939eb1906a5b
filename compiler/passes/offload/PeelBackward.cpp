//===- PeelBackward.cpp - the last micro-batch has a backward of its own ---===//
//
// The backward of a step with several micro-batches is one routine, which is called for each. Sums of gradients are
// complete in its last call alone, beside which updates may be made. So this one becomes a routine by itself, with the
// same commands: other passes put there what belongs beside it (ds-advance-updates, ds-read-ahead). Cf. loop peeling.
//
//===----------------------------------------------------------------------===//
#include "compiler/passes/offload/Passes.h"
#include "compiler/passes/offload/StepStart.h"
#include "dialects/Plan/Plan.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"

#include "llvm/ADT/SetVector.h"

namespace ds {
#define GEN_PASS_DEF_PEELBACKWARD
#include "compiler/passes/offload/Passes.h.inc"
} // namespace ds

using namespace mlir;
using namespace ds;

namespace {

plan::RoutineOp routineOf(plan::CallOp call) {
  return SymbolTable::lookupNearestSymbolFrom<plan::RoutineOp>(call, call.getRoutineAttr());
}

/// The last call of the only backward of a step, if that is called several times; else null.
plan::CallOp lastOfSeveral(plan::ProgramOp step) {
  plan::CallOp last;
  for (plan::CallOp call : step.getCallsBeforeTail())
    if (const plan::Phase phase = routineOf(call).getPhase();
        phase == plan::Phase::Backward || phase == plan::Phase::Weight) {
      if (last && last.getRoutine() != call.getRoutine())
        return {};
      last = call;
    }
  return last && callsIn(step, last.getRoutineAttr().getAttr()) > 1 ? last : plan::CallOp();
}

/// Behind it, with buffers of its own for what lives in one call.
plan::RoutineOp copyOf(plan::RoutineOp routine) {
  llvm::SetVector<Operation *> own;
  for (auto command : routine.getOps<plan::CommandOpInterface>())
    for (Value operand : command.getBuffers())
      if (auto buffer = operand.getDefiningOp<plan::BufferOp>(); buffer.getScope() == plan::Scope::Call)
        own.insert(buffer);
  OpBuilder builder(routine.getContext());
  builder.setInsertionPointAfter(routine);
  IRMapping mapping;
  for (Operation *buffer : own)
    builder.clone(*buffer, mapping);
  auto copy = cast<plan::RoutineOp>(builder.clone(*routine, mapping));
  copy.setSymName((routine.getSymName() + "_last").str());
  return copy;
}

bool passesMessages(plan::RoutineOp routine) {
  return llvm::any_of(routine.getBody().front(), llvm::IsaPred<plan::SendOp, plan::ReceiveOp>);
}

struct PeelBackward : ds::impl::PeelBackwardBase<PeelBackward> {
  using PeelBackwardBase::PeelBackwardBase;

  void runOnOperation() override {
    for (auto role : getOperation().getOps<plan::RoleOp>()) {
      if (!LayerGroups(role).empty()) // a layer's sums are complete behind it
        continue;
      for (auto program : role.getOps<plan::ProgramOp>())
        if (plan::CallOp last = lastOfSeveral(program); last && !passesMessages(routineOf(last)))
          last.setRoutine(copyOf(routineOf(last)).getSymName());
    }
  }
};

} // namespace
