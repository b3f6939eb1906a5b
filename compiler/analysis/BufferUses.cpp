//===- BufferUses.cpp - when a routine uses which buffers -------------------===//
#include "compiler/analysis/BufferUses.h"

using namespace mlir;
using namespace ds;

namespace {

bool isOnCompute(Operation &op) {
  auto queue = SymbolTable::lookupNearestSymbolFrom<plan::QueueOp>(&op, op.getAttrOfType<FlatSymbolRefAttr>("queue"));
  return queue && queue.getKind() == plan::QueueKind::Compute;
}

/// The commands on the compute queue of a routine that signal events and wait for them.
struct RoutineEvents {
  explicit RoutineEvents(plan::RoutineOp routine) {
    for (Operation &op : routine.getBody().front())
      note(op, commands++);
  }

  void note(Operation &op, int64_t command) {
    if (!isOnCompute(op))
      return;
    for (Attribute event : op.getAttrOfType<ArrayAttr>("signals"))
      signalled[event] = command;
    const auto delays = op.getAttrOfType<DenseI64ArrayAttr>("delays").asArrayRef();
    for (auto [event, delay] : llvm::zip(op.getAttrOfType<ArrayAttr>("waits"), delays))
      if (delay == 0)
        awaited.try_emplace(event, command);
  }

  /// From the last command that signals what `op` waits for to the first that waits for its signal.
  CommandSpan around(Operation &op) const {
    CommandSpan span{0, commands - 1};
    for (Attribute event : op.getAttrOfType<ArrayAttr>("waits"))
      if (auto at = signalled.find(event); at != signalled.end())
        span.first = std::max(span.first, at->second);
    for (Attribute event : op.getAttrOfType<ArrayAttr>("signals"))
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

} // namespace

BufferUses::BufferUses(plan::RoleOp role) {
  for (auto routine : role.getOps<plan::RoutineOp>())
    addRoutine(routine);
}

void BufferUses::addRoutine(plan::RoutineOp routine) {
  const RoutineEvents events(routine);
  Spans &spans = byRoutine_[routine];
  for (auto [command, op] : llvm::enumerate(routine.getBody().front())) {
    CommandSpan span{int64_t(command), int64_t(command)};
    bool known = true;
    if (isa<plan::CollectiveOp>(op) && !isOnCompute(op))
      span = events.around(op);
    if (auto send = dyn_cast<plan::SendOp>(op))
      if ((known = events.awaits(send.getSignals())))
        span = events.around(op);
    if (auto receive = dyn_cast<plan::ReceiveOp>(op))
      known = llvm::is_contained(receive.getDelays(), 0);
    for (Value operand : op.getOperands()) {
      Operation *buffer = operand.getDefiningOp();
      if (!known)
        messages_.insert(buffer);
      if (isa<plan::FeedOp>(op))
        fed_.insert(buffer);
      CommandSpan &all = spans.try_emplace(buffer, span).first->second;
      all.first = std::min(all.first, span.first);
      all.last = std::max(all.last, span.last);
    }
  }
}
