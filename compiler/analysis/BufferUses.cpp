//===- BufferUses.cpp - when a routine uses which buffers -------------------===//
#include "compiler/analysis/BufferUses.h"

#include "compiler/analysis/Routines.h"

#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace ds;

bool ds::conflict(plan::CommandOpInterface a, plan::CommandOpInterface b) {
  const OperandRange others = b.getBuffers();
  for (auto [i, mine] : llvm::enumerate(a.getBuffers()))
    for (auto [j, theirs] : llvm::enumerate(others)) {
      if (mine != theirs || (!a.writes(i) && !b.writes(j)))
        continue;
      const auto [begin, end] = a.getByteRange(i);
      const auto [otherBegin, otherEnd] = b.getByteRange(j);
      if (begin < otherEnd && otherBegin < end)
        return true;
    }
  return false;
}

namespace {

bool isOnCompute(plan::CommandOpInterface command) {
  auto queue = SymbolTable::lookupNearestSymbolFrom<plan::QueueOp>(command, command.getQueueAttr());
  return queue && queue.getKind() == plan::QueueKind::Compute;
}

/// The commands on the compute queue of a routine that signal events and wait for them, be it by way of another queue.
struct RoutineEvents {
  explicit RoutineEvents(plan::RoutineOp routine) {
    const auto all = llvm::to_vector(routine.getOps<plan::CommandOpInterface>());
    for (plan::CommandOpInterface command : all)
      note(command, commands++);
    for (plan::CommandOpInterface command : llvm::reverse(all))
      noteThrough(command);
  }

  /// What a command of another queue waits for has ended when the command has.
  void noteThrough(plan::CommandOpInterface command) {
    if (isOnCompute(command) || !awaits(command.getSignals()))
      return;
    const int64_t last = around(command).last;
    for (auto [event, delay] : llvm::zip(command.getWaits(), command.getDelays()))
      if (delay == 0) {
        int64_t &first = awaited.try_emplace(event, last).first->second;
        first = std::min(first, last);
      }
  }

  void note(plan::CommandOpInterface command, int64_t number) {
    if (!isOnCompute(command))
      return;
    for (Attribute event : command.getSignals())
      signalled[event] = number;
    for (auto [event, delay] : llvm::zip(command.getWaits(), command.getDelays()))
      if (delay == 0)
        awaited.try_emplace(event, number);
  }

  /// From the last command that signals what `command` waits for to the first that waits for its signal.
  CommandSpan around(plan::CommandOpInterface command) const {
    CommandSpan span{0, commands - 1};
    for (Attribute event : command.getWaits())
      if (auto at = signalled.find(event); at != signalled.end())
        span.first = std::max(span.first, at->second);
    for (Attribute event : command.getSignals())
      if (auto at = awaited.find(event); at != awaited.end())
        span.last = std::min(span.last, at->second);
    return span;
  }

  bool awaits(ArrayAttr events) const {
    return llvm::any_of(events, [&](Attribute event) { return awaited.contains(event); });
  }

  llvm::DenseMap<Attribute, int64_t> signalled, awaited; // the last command that signals, the first that waits
  int64_t commands = 0;
};

/// Whether it is under way beside compute, from an event to another.
bool runsBeside(plan::CommandOpInterface command) {
  return isa<plan::CollectiveOp, plan::CopyOp, plan::FillOp, plan::KernelOp>(command.getOperation()) &&
         !isOnCompute(command);
}

} // namespace

BufferUses::BufferUses(plan::RoleOp role) {
  for (auto routine : role.getOps<plan::RoutineOp>())
    addRoutine(routine);
  for (auto program : role.getOps<plan::ProgramOp>())
    if (program.getName() == "step")
      addWaits(program, Routines(role));
}

/// Uses up to the waits of later routines.
void BufferUses::addWaits(plan::ProgramOp step, const Routines &byName) {
  llvm::SetVector<Operation *> routines; // in the order of their first calls
  for (auto call : step.getOps<plan::CallOp>())
    routines.insert(byName.of(call));
  SmallVector<plan::CommandOpInterface> waiting; // of routines before
  for (Operation *op : routines) {
    auto routine = cast<plan::RoutineOp>(op);
    const RoutineEvents events(routine);
    llvm::erase_if(waiting, [&](plan::CommandOpInterface command) {
      if (!events.awaits(command.getSignals()))
        return false;
      for (Value operand : command.getBuffers())
        if (operand.getDefiningOp<plan::BufferOp>().getScope() != plan::Scope::Plan)
          add(routine, operand.getDefiningOp(), {0, events.around(command).last});
      return true;
    });
    for (auto command : routine.getOps<plan::CommandOpInterface>())
      if (runsBeside(command) && !events.awaits(command.getSignals()))
        waiting.push_back(command);
  }
}

void BufferUses::addRoutine(plan::RoutineOp routine) {
  const RoutineEvents events(routine);
  SmallVector<std::pair<int64_t, plan::SendOp>> leaving; // messages that the routine does not wait for
  for (auto [number, command] : llvm::enumerate(routine.getOps<plan::CommandOpInterface>()))
    if (auto send = dyn_cast<plan::SendOp>(command.getOperation()); send && !events.awaits(command.getSignals()))
      leaving.emplace_back(number, send);
  byRoutine_[routine];
  for (auto [number, command] : llvm::enumerate(routine.getOps<plan::CommandOpInterface>())) {
    Operation *op = command;
    CommandSpan span{int64_t(number), int64_t(number)};
    bool known = true;
    if (runsBeside(command))
      span = events.around(command);
    if (isa<plan::SendOp>(op))
      if ((known = events.awaits(command.getSignals())))
        span = events.around(command);
    if (isa<plan::ReceiveOp>(op))
      known = llvm::is_contained(command.getDelays(), 0);
    for (Value operand : command.getBuffers()) {
      Operation *buffer = operand.getDefiningOp();
      if (!known)
        messages_.insert(buffer);
      if (isa<plan::FeedOp>(op))
        fed_.insert(buffer);
      CommandSpan own = span;
      for (auto [at, send] : leaving) // what waits for the command is the last to use the buffer
        if (runsBeside(command) && llvm::is_contained(send.getBuffers(), operand) &&
            llvm::any_of(send.getWaits(),
                         [&](Attribute event) { return llvm::is_contained(command.getSignals(), event); }))
          own.last = at;
      add(routine, buffer, own);
    }
  }
}

void BufferUses::add(plan::RoutineOp routine, Operation *buffer, const CommandSpan &span) {
  CommandSpan &all = byRoutine_[routine].try_emplace(buffer, span).first->second;
  all.first = std::min(all.first, span.first);
  all.last = std::max(all.last, span.last);
}
