//===- OrderMessages.cpp - compute against what arrives and what leaves -------===//
#include "compiler/passes/plan/OrderMessages.h"

#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace ds;

void OrderMessages::connect(dist::FragmentOp fragment, plan::RoutineOp routine) {
  llvm::SetVector<StringAttr> taken;
  for (auto take : fragment.getOps<dist::LoadOp>())
    taken.insert(take.getValueAttr().getAttr());
  const auto touches = [&](const llvm::SetVector<StringAttr> &values) {
    return llvm::any_of(values, [&](StringAttr value) { return taken.contains(value); });
  };
  for (const auto &[op, arrival] : inFlight_.arrivals()) {
    if (touches(arrival.values))
      if (Operation *user = firstUser(routine, arrival))
        writer_.addWait(user, arrival.ready);
    if (arrival.lastReader == fragment)
      writer_.addSignal(computeCommand(routine, /*last=*/true), arrival.freed);
  }
  for (const auto &[op, departure] : inFlight_.departures()) {
    if (op->getParentOp() == fragment && !departure.values.empty() && departure.slots < microbatches_)
      writer_.addWait(computeCommand(routine, /*last=*/false), departure.sent, departure.slots);
    else if (op->getParentOp() != fragment && touches(departure.values))
      writer_.addWait(computeCommand(routine, /*last=*/false), departure.sent);
  }
  if (auto feed =
          routine.getBody().front().empty() ? plan::FeedOp() : dyn_cast<plan::FeedOp>(routine.getBody().front().back()))
    for (const auto &[op, arrival] : inFlight_.arrivals())
      if (op->getParentOp() == fragment)
        writer_.addSignal(feed, arrival.ready); // the last feed says that all inputs are there
}

/// The first command that uses what arrives; null if none does.
Operation *OrderMessages::firstUser(plan::RoutineOp routine, const Arrival &arrival) {
  llvm::SmallDenseSet<Value> buffers;
  for (StringAttr value : arrival.values)
    buffers.insert(placement_.ofValue(value).buffer);
  for (Operation &op : routine.getBody().front())
    if (llvm::any_of(op.getOperands(), [&](Value operand) { return buffers.contains(operand); }))
      return &op;
  return nullptr;
}

/// The first or last command of a routine on the compute queue; an idle one if there is none.
Operation *OrderMessages::computeCommand(plan::RoutineOp routine, bool last) {
  const auto isCompute = [](Operation &op) {
    return op.getAttrOfType<FlatSymbolRefAttr>("queue").getValue() == "compute";
  };
  Block &body = routine.getBody().front();
  if (llvm::none_of(body, isCompute))
    writer_.join(routine.getLoc());
  auto found = llvm::find_if(body, isCompute);
  for (auto it = found; last && it != body.end(); ++it)
    found = isCompute(*it) ? it : found;
  return &*found;
}
