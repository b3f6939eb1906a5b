//===- HeldOperands.cpp - what stays on the device from a forward to its backward ---===//
#include "compiler/passes/offload/HeldOperands.h"

#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace ds;

namespace {

/// Routines that calls of a role's programs have one behind another, null at both ends of a program.
using Neighbours = llvm::SetVector<std::pair<Operation *, Operation *>>;

Neighbours neighboursIn(plan::RoleOp role) {
  Neighbours neighbours;
  for (auto program : role.getOps<plan::ProgramOp>()) {
    Operation *before = nullptr;
    for (auto call : program.getOps<plan::CallOp>()) {
      auto routine = SymbolTable::lookupNearestSymbolFrom<plan::RoutineOp>(call, call.getRoutineAttr());
      neighbours.insert({before, routine});
      before = routine;
    }
    neighbours.insert({before, nullptr});
  }
  return neighbours;
}

/// The backward that every call of a forward has behind it, and no other call; else null.
plan::RoutineOp followerOf(plan::RoutineOp forward, const Neighbours &neighbours) {
  Operation *follower = nullptr;
  for (auto [before, behind] : neighbours)
    if (before == forward) {
      if (!behind || follower)
        return {};
      follower = behind;
    }
  for (auto [before, behind] : neighbours)
    if (behind == follower && before != forward)
      return {};
  auto routine = dyn_cast_or_null<plan::RoutineOp>(follower);
  return routine && routine.getPhase() == plan::Phase::Backward ? routine : plan::RoutineOp();
}

/// Whether two commands read the same of a buffer.
bool readSame(plan::CommandOpInterface a, unsigned i, plan::CommandOpInterface b, unsigned j) {
  return a.getBuffers()[i] == b.getBuffers()[j] && a.getByteRange(i) == b.getByteRange(j) && a.getRankStride(i) == 0 &&
         b.getRankStride(j) == 0 && !a.writes(i) && !b.writes(j);
}

} // namespace

llvm::DenseMap<OperandUse, OperandUse>
ds::findHeld(plan::RoleOp role, llvm::function_ref<SmallVector<plan::CommandOpInterface>(plan::RoutineOp)> usersIn,
             llvm::function_ref<bool(Value)> comes) {
  llvm::DenseMap<OperandUse, OperandUse> held;
  const Neighbours neighbours = neighboursIn(role);
  for (auto forward : role.getOps<plan::RoutineOp>()) {
    plan::RoutineOp backward;
    if (forward.getPhase() == plan::Phase::Forward)
      backward = followerOf(forward, neighbours);
    if (!backward)
      continue;
    SmallVector<plan::CommandOpInterface> before = usersIn(forward), behind = usersIn(backward);
    if (before.empty() || behind.empty())
      continue;
    for (unsigned last = 0; last < before.back().getBuffers().size(); ++last)
      for (unsigned first = 0; first < behind.front().getBuffers().size(); ++first)
        if (comes(before.back().getBuffers()[last]) && readSame(before.back(), last, behind.front(), first))
          held[{behind.front(), first}] = {before.back(), last};
  }
  return held;
}
