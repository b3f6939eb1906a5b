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

/// The arena of the role that the host reads and writes itself while a program runs, or null.
plan::ArenaOp hostDrivenArena(plan::RoleOp role) {
  for (auto arena : role.getOps<plan::ArenaOp>())
    if (arena.getSpace() == plan::MemorySpace::Nvme)
      return arena;
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
      plan::ArenaOp hostDriven = hostDrivenArena(role);
      for (auto program : role.getOps<plan::ProgramOp>()) {
        if (program.getCaptured() && hostDriven) {
          InFlightDiagnostic error = program.emitOpError();
          error << "is captured, but its role has arena @" << hostDriven.getSymName()
                << " in space nvme, which the host reads and writes while a program runs";
          error.attachNote(hostDriven.getLoc()) << "the arena";
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
