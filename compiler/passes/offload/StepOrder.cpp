//===- StepOrder.cpp - in which order a step runs its commands ------------===//
#include "compiler/passes/offload/StepOrder.h"

#include "compiler/passes/offload/StepStart.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace ds;

StepOrder::StepOrder(plan::RoleOp role) : role_(role) {
  for (auto program : role.getOps<plan::ProgramOp>())
    if (program.getName() == "step")
      for (auto call : program.getOps<plan::CallOp>())
        calls_.push_back(SymbolTable::lookupNearestSymbolFrom<plan::RoutineOp>(call, call.getRoutineAttr()));
}

StepPlace StepOrder::firstOf(Operation *command) const {
  const auto found = llvm::find(calls_, cast<plan::RoutineOp>(command->getParentOp()));
  return found == calls_.end() ? StepPlace::end() : StepPlace{size_t(found - calls_.begin()), command};
}

StepPlace StepOrder::beginOf(plan::RoutineOp routine) const {
  return {size_t(llvm::find(calls_, routine) - calls_.begin()), nullptr};
}

StepPlace StepOrder::lastOf(Operation *command) const {
  for (size_t call = calls_.size(); call-- > 0;)
    if (calls_[call] == command->getParentOp())
      return {call, command};
  return StepPlace::start();
}

bool StepOrder::isCalledOnce(plan::RoutineOp routine) const {
  int64_t calls = 0;
  for (auto program : plan::RoleOp(role_).getOps<plan::ProgramOp>())
    calls += callsIn(program, routine.getSymNameAttr());
  return calls == 1;
}

StepPlace StepOrder::calledOnceFrom(const StepPlace &place) const {
  for (StepPlace next = place; next.call < calls_.size(); next = {next.call + 1, nullptr})
    if (isCalledOnce(calls_[next.call]))
      return next;
  return StepPlace::end();
}

void ds::eraseWithCalls(plan::RoutineOp routine) {
  for (auto program : routine->getParentOfType<plan::RoleOp>().getOps<plan::ProgramOp>())
    for (auto call : llvm::make_early_inc_range(program.getOps<plan::CallOp>()))
      if (call.getRoutine() == routine.getSymName())
        call.erase();
  routine.erase();
}
