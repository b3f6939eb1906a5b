//===- StepStart.cpp - what stands between the calls of a step ------------===//
#include "compiler/passes/offload/StepStart.h"

#include "mlir/IR/Builders.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>

using namespace mlir;
using namespace ds;

namespace {

constexpr StringLiteral firstStart = "start_step";

uint64_t lastMicrobatch(plan::ProgramOp program) {
  uint64_t last = 0;
  for (auto call : program.getOps<plan::CallOp>())
    last = std::max<uint64_t>(last, call.getMicrobatch());
  return last;
}

plan::ProgramOp stepOf(plan::RoleOp role) {
  for (auto program : role.getOps<plan::ProgramOp>())
    if (program.getName() == "step")
      return program;
  return {};
}

/// An empty routine of this name, which the step calls in front of `before`, or first; the one that there is.
plan::RoutineOp startNamed(plan::RoleOp role, StringRef name, Operation *before) {
  if (auto known = SymbolTable::lookupSymbolIn(role, name))
    return cast<plan::RoutineOp>(known);
  OpBuilder builder(*role.getOps<plan::ProgramOp>().begin()); // behind all buffers
  auto routine =
      plan::RoutineOp::create(builder, role.getLoc(), builder.getStringAttr(name), plan::Phase::Begin, IntegerAttr());
  routine.getBody().emplaceBlock();
  if (plan::ProgramOp step = stepOf(role)) {
    if (before)
      builder.setInsertionPoint(before);
    else
      builder.setInsertionPointToStart(&step.getBody().front());
    plan::CallOp::create(builder, role.getLoc(), name, lastMicrobatch(step));
  }
  return routine;
}

plan::RoutineOp routineOf(plan::CallOp call) {
  return SymbolTable::lookupNearestSymbolFrom<plan::RoutineOp>(call, call.getRoutineAttr());
}

bool isPass(plan::RoutineOp routine) {
  return routine.getPhase() == plan::Phase::Forward || routine.getPhase() == plan::Phase::Backward;
}

} // namespace

plan::RoutineOp ds::stepStart(plan::RoleOp role) { return startNamed(role, firstStart, {}); }

plan::RoutineOp ds::startBefore(plan::CallOp call) {
  return startNamed(call->getParentOfType<plan::RoleOp>(), ("start_" + call.getRoutine()).str(), call);
}

int64_t ds::callsIn(plan::ProgramOp program, Attribute routine) {
  return llvm::count_if(program.getOps<plan::CallOp>(),
                        [&](plan::CallOp call) { return call.getRoutineAttr().getAttr() == routine; });
}

LayerGroups::LayerGroups(plan::RoleOp role) : role_(role), step_(stepOf(role)) {
  if (!step_ || lastMicrobatch(step_) == 0)
    return;
  for (auto call : step_.getOps<plan::CallOp>()) {
    plan::RoutineOp routine = routineOf(call);
    if (isPass(routine) && (routines_.empty() || routines_.back() != routine))
      routines_.push_back(routine);
  }
  llvm::SmallDenseSet<Operation *> forwards, all;
  for (plan::RoutineOp routine : routines_) {
    all.insert(routine);
    if (routine.getPhase() == plan::Phase::Forward)
      forwards.insert(routine);
  }
  if (forwards.size() < 2 || all.size() != routines_.size())
    routines_.clear();
}

std::optional<size_t> LayerGroups::find(Operation *routine) const {
  const auto found = llvm::find(routines_, routine);
  return found == routines_.end() ? std::nullopt : std::optional(size_t(found - routines_.begin()));
}

plan::RoutineOp LayerGroups::startOf(size_t group) {
  if (group == 0)
    return stepStart(role_);
  const bool isLast = group == routines_.size();
  plan::RoutineOp routine = routines_[isLast ? group - 1 : group];
  SmallVector<plan::CallOp> calls(llvm::make_filter_range(
      step_.getOps<plan::CallOp>(), [&](plan::CallOp call) { return call.getRoutine() == routine.getSymName(); }));
  if (isLast)
    return startNamed(role_, nameOf(group), calls.back()->getNextNode());
  return startNamed(role_, nameOf(group), calls.front());
}

std::string LayerGroups::nameOf(size_t group) {
  if (group == 0)
    return firstStart.str();
  return ("start_" + (group < routines_.size() ? routines_[group].getSymName() : "update")).str();
}

plan::RoutineOp LayerGroups::startBefore(plan::RoutineOp start) {
  for (size_t group = 1; !empty() && group <= routines_.size(); ++group)
    if (start.getSymName() == nameOf(group))
      return startOf(group - 1);
  return {};
}
