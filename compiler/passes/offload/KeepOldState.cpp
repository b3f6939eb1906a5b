//===- KeepOldState.cpp - files keep old state beside new -----------------===//
//
// Updates that are made beside the backward, as if nothing were clipped, may be made again in the tail of the step
// (SpeculativeUpdates.h), from the state as it was. So state in a file gets a second place, and all that a step writes
// of it goes there. At its end the two exchange what they hold (runtime/plan/FORMAT.md): nothing is copied.
//
//===----------------------------------------------------------------------===//
#include "compiler/passes/offload/OperandCopies.h"
#include "compiler/passes/offload/Passes.h"
#include "dialects/Plan/Plan.h"

#include "mlir/IR/Builders.h"

#include "llvm/ADT/SetVector.h"

namespace ds {
#define GEN_PASS_DEF_KEEPOLDSTATE
#include "compiler/passes/offload/Passes.h.inc"
} // namespace ds

using namespace mlir;
using namespace ds;

namespace {

bool isStateInFile(Value operand) {
  auto buffer = operand.getDefiningOp<plan::BufferOp>();
  return spaceOf(operand) == plan::MemorySpace::Nvme && buffer.getCategory() == plan::Category::Optimizer &&
         buffer.getScope() == plan::Scope::Plan && !buffer.getNext();
}

/// State in files that calls behind a program's tail write.
llvm::SetVector<Value> writtenAgain(plan::RoleOp role) {
  llvm::SetVector<Value> state;
  for (auto program : role.getOps<plan::ProgramOp>())
    for (auto tail : program.getOps<plan::TailOp>())
      for (auto call : program.getOps<plan::CallOp>())
        if (tail->isBeforeInBlock(call))
          for (auto copy : SymbolTable::lookupNearestSymbolFrom<plan::RoutineOp>(program, call.getRoutineAttr())
                               .getOps<plan::CopyOp>())
            if (isStateInFile(copy.getBuffers()[1]))
              state.insert(copy.getBuffers()[1]);
  return state;
}

/// Behind `old`, for the same variable.
Value makeNext(plan::BufferOp old) {
  OpBuilder builder(old.getContext());
  builder.setInsertionPointAfter(old);
  auto next = cast<plan::BufferOp>(builder.clone(*old));
  next.setNext(true);
  return next.getBuffer();
}

struct KeepOldState : ds::impl::KeepOldStateBase<KeepOldState> {
  using KeepOldStateBase::KeepOldStateBase;

  void runOnOperation() override {
    for (auto role : getOperation().getOps<plan::RoleOp>())
      for (Value old : writtenAgain(role)) {
        const Value next = makeNext(old.getDefiningOp<plan::BufferOp>());
        old.replaceUsesWithIf(next, [](OpOperand &use) { // what copies write
          return isa<plan::CopyOp>(use.getOwner()) && use.getOperandNumber() == 1;
        });
      }
  }
};

} // namespace
