//===- ChooseCapturedPrograms.cpp - which programs a device may record once ------===//
#include "compiler/passes/plan/Passes.h"
#include "dialects/Plan/Plan.h"

namespace ds {
#define GEN_PASS_DEF_CHOOSECAPTUREDPROGRAMS
#include "compiler/passes/plan/Passes.h.inc"
} // namespace ds

using namespace mlir;
using namespace ds;

namespace {

/// A queue of the role whose work the host does while a program runs, or null.
plan::QueueOp hostDrivenQueue(plan::RoleOp role) {
  for (auto queue : role.getOps<plan::QueueOp>())
    if (queue.getKind() == plan::QueueKind::Host || queue.getKind() == plan::QueueKind::Io)
      return queue;
  return {};
}

/// Commands that one run executes.
int64_t commandsOf(plan::ProgramOp program) {
  const SymbolTable members(program->getParentOp());
  int64_t commands = 0;
  for (auto call : program.getOps<plan::CallOp>())
    commands += int64_t(members.lookup<plan::RoutineOp>(call.getRoutine()).getBody().front().getOperations().size());
  return commands;
}

struct ChooseCapturedPrograms : ds::impl::ChooseCapturedProgramsBase<ChooseCapturedPrograms> {
  using ChooseCapturedProgramsBase::ChooseCapturedProgramsBase;

  void runOnOperation() override {
    bool possible = true;
    SmallVector<plan::ProgramOp> steps; // one a role
    for (auto role : getOperation().getOps<plan::RoleOp>()) {
      plan::QueueOp hostDriven = hostDrivenQueue(role);
      for (auto program : role.getOps<plan::ProgramOp>()) {
        if (program.getCaptured() && hostDriven) {
          InFlightDiagnostic error = program.emitOpError();
          error << "is captured, but its role has queue @" << hostDriven.getSymName() << " of kind "
                << stringifyQueueKind(hostDriven.getKind()) << ", whose work the host does while a program runs";
          error.attachNote(hostDriven.getLoc()) << "the queue";
          return signalPassFailure();
        }
        if (program.getName() != "step")
          continue;
        steps.push_back(program);
        possible &= !hostDriven && commandsOf(program) <= commands;
      }
    }
    for (plan::ProgramOp step : steps)
      if (possible)
        step.setCaptured(true);
  }
};

} // namespace
