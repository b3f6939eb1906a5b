//===- HostRoundings.cpp - parameters are rounded where they lie ----------===//
#include "compiler/passes/offload/HostRoundings.h"

#include "compiler/analysis/KernelSelection.h"
#include "compiler/passes/offload/StepOrder.h"
#include "kernels/ElementwiseProgram.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace ds;

namespace {

/// The rounding whose result, which nothing else names, a command copies to what outlives the call; else null.
Operation *copiedRounding(plan::KernelOp copy) {
  auto between = copy.getBuffers()[0].getDefiningOp<plan::BufferOp>();
  if (!isCopy(copy) || between.getScope() != plan::Scope::Call || !between.getBuffer().hasNUses(2))
    return nullptr;
  for (Operation *user : between->getUsers())
    if (isRounding(user) && user->getBlock() == copy->getBlock())
      return user;
  return nullptr;
}

/// Whether a command of its routine writes what a command reads first.
bool isWrittenBeside(plan::CommandOpInterface command) {
  return llvm::any_of(command.getBuffers()[0].getUses(), [&](OpOperand &use) {
    auto other = cast<plan::CommandOpInterface>(use.getOwner());
    return other->getBlock() == command->getBlock() && other.writes(use.getOperandNumber());
  });
}

} // namespace

bool ds::isRounding(Operation *op) {
  auto kernel = dyn_cast<plan::KernelOp>(op);
  auto program = kernel && kernel.getKernel() == "elementwise"
                     ? kernel.getArguments().getAs<DenseI64ArrayAttr>("program")
                     : DenseI64ArrayAttr();
  if (!program || program.size() != kernels::elementwiseInstructionWidth || kernel.getBuffers().size() != 2 ||
      program[0] != int64_t(kernels::ElementwiseOp::Cast))
    return false;
  auto command = cast<plan::CommandOpInterface>(op);
  const Type from = command.getTensor(0).getElementType(), to = command.getTensor(1).getElementType();
  return isa<FloatType>(from) && isa<FloatType>(to) && to.getIntOrFloatBitWidth() < from.getIntOrFloatBitWidth() &&
         command.getTensor(0).getNumElements() == command.getTensor(1).getNumElements() && !isWrittenBeside(command);
}

Operation *ds::behindLookups(plan::RoutineOp routine, llvm::function_ref<bool(Value)> isAway,
                             llvm::function_ref<bool(plan::CommandOpInterface, Value)> isLeft) {
  Operation *front = &routine.getBody().front().front();
  for (auto command : routine.getOps<plan::CommandOpInterface>())
    for (Value buffer : command.getBuffers()) {
      if (!isAway(buffer))
        continue;
      if (!isLeft(command, buffer) || isRounding(command))
        return front;
      front = command->getNextNode() ? command->getNextNode() : front;
    }
  return front;
}

StepRoundings::StepRoundings(plan::RoleOp role, LayerGroups &groups,
                             llvm::function_ref<bool(plan::CommandOpInterface)> isLeft)
    : role_(role), groups_(groups) {
  for (auto routine : role.getOps<plan::RoutineOp>()) {
    if (routine.getPhase() != plan::Phase::Gather)
      continue;
    routines_.push_back(routine);
    for (auto copy : routine.getOps<plan::KernelOp>())
      if (Operation *rounding = copiedRounding(copy); rounding && isLeft(cast<plan::CommandOpInterface>(rounding)))
        makers_[copy.getBuffers()[1]] = {rounding, copy};
  }
}

void StepRoundings::moveFor(Value buffer, plan::RoutineOp user) {
  const auto found = makers_.find(buffer);
  if (found == makers_.end() || user.getPhase() == plan::Phase::Gather)
    return;
  const std::optional<size_t> group = groups_.find(user);
  plan::RoutineOp start = group ? groups_.startAheadOf(*group) : stepStart(role_);
  Block &block = start.getBody().front();
  const auto [rounding, copy] = found->second;
  rounding->moveBefore(&block, block.end());
  copy->moveBefore(&block, block.end());
  makers_.erase(found);
}

void StepRoundings::eraseEmptied() {
  for (plan::RoutineOp routine : routines_)
    if (routine.getBody().front().empty())
      eraseWithCalls(routine);
}
