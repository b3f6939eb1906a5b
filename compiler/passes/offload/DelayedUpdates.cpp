//===- DelayedUpdates.cpp - updates of the step before, beside all of a step ---===//
#include "compiler/passes/offload/DelayedUpdates.h"

#include "compiler/analysis/BufferUses.h"
#include "compiler/passes/offload/OperandCopies.h"
#include "compiler/passes/offload/StepOrder.h"
#include "compiler/passes/offload/StepStart.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <optional>

using namespace mlir;
using namespace ds;

namespace {

/// The state that an update reads its gradient from; null where that is this step's.
Value pendingOf(plan::CommandOpInterface update) {
  for (Value operand : update.getBuffers())
    if (isPending(operand.getDefiningOp<plan::BufferOp>()))
      return operand;
  return {};
}

/// This step's gradients that will lie where an update reads: one, of whole parameters or of a bucket.
SmallVector<Value> gradientsOf(plan::CommandOpInterface update) {
  SmallVector<Value> gradients;
  for (Operation *user : pendingOf(update).getUsers())
    if (isPendingCopy(user))
      gradients.push_back(user->getOperand(0));
  return gradients;
}

/// Moves the delayed updates of one role.
class Moves {
public:
  Moves(plan::RoleOp role, SmallVector<plan::CommandOpInterface> updates)
      : updates_(std::move(updates)), isByLayer_(!LayerGroups(role).empty()), start_(startOfPasses(role)),
        order_(role) {}

  void run() {
    SmallVector<Delayed> moves;
    for (plan::CommandOpInterface update : updates_)
      if (const std::optional<StepPlace> place = placeBehindUses(update))
        moves.push_back({update, *place, firstGradient(update)});
    llvm::stable_sort(moves, [&](const Delayed &a, const Delayed &b) {
      return isByLayer_ ? a.place < b.place : a.gradient < b.gradient;
    });
    StepPlace place = StepPlace::start();
    for (const Delayed &one : moves) {
      place = std::max(place, one.place);
      move(one.update, place);
    }
    if (start_ && start_.getBody().front().empty())
      eraseWithCalls(start_);
  }

private:
  struct Delayed {
    plan::CommandOpInterface update;
    StepPlace place;    ///< behind all that touches the same bytes
    StepPlace gradient; ///< where the next one begins to be made
  };

  /// With several micro-batches, where a step has done what it begins with: in front of the first forward. Null with
  /// one, or where layers have starts of their own.
  plan::RoutineOp startOfPasses(plan::RoleOp role) const {
    for (auto program : role.getOps<plan::ProgramOp>()) {
      const auto calls = program.getOps<plan::CallOp>();
      const bool several = llvm::any_of(calls, [](plan::CallOp call) { return call.getMicrobatch() > 0; });
      if (isByLayer_ || !several || program.getName() != "step")
        continue;
      for (plan::CallOp call : calls)
        if (SymbolTable::lookupNearestSymbolFrom<plan::RoutineOp>(call, call.getRoutineAttr()).getPhase() ==
            plan::Phase::Forward)
          return startBefore(call);
    }
    return {};
  }

  /// Where this step's gradient, which will take the place of the one that an update reads, is first made; it may begin
  /// with zeros.
  StepPlace firstGradient(plan::CommandOpInterface update) const {
    StepPlace first = StepPlace::end();
    for (Value gradient : gradientsOf(update))
      for (Operation *user : gradient.getUsers())
        if (!isPendingCopy(user) && !isa<plan::FillOp>(user))
          first = std::min(first, order_.firstOf(user));
    return first;
  }

  /// Nothing where a command of its own routine has to come first.
  std::optional<StepPlace> placeBehindUses(plan::CommandOpInterface update) const {
    StepPlace place = start_ ? order_.beginOf(start_) : StepPlace::start();
    for (Value operand : update.getBuffers())
      for (Operation *user : operand.getUsers()) {
        auto other = dyn_cast<plan::CommandOpInterface>(user);
        if (!other || other == update || !conflict(other, update))
          continue;
        if (user->getParentOp() != update->getParentOp())
          place = std::max(place, order_.lastOf(user));
        else if (user->isBeforeInBlock(update))
          return std::nullopt;
      }
    place = order_.calledOnceFrom(place);
    return place.call < order_.firstOf(update).call ? std::optional(place) : std::nullopt;
  }

  /// Behind the op of a place, and behind the update that was put there before.
  void move(plan::CommandOpInterface update, const StepPlace &place) {
    plan::RoutineOp routine = order_.routineOf(place);
    Block &block = routine.getBody().front();
    Operation *behind = place.op;
    if (last_ && last_->getBlock() == &block && !(behind && last_->isBeforeInBlock(behind)))
      behind = last_;
    moveTo(update, routine, behind ? std::next(behind->getIterator()) : block.begin());
    last_ = update;
    if (routine == start_)
      moveZeros(update);
  }

  /// Sums over micro-batches begin where the update has read the old one, so they may lie there.
  void moveZeros(plan::CommandOpInterface update) {
    for (Value gradient : gradientsOf(update))
      for (Operation *user : llvm::make_early_inc_range(gradient.getUsers()))
        if (isa<plan::FillOp>(user) && cast<plan::RoutineOp>(user->getParentOp()).getPhase() == plan::Phase::Begin) {
          moveTo(user, start_, std::next(last_->getIterator()));
          last_ = user;
        }
  }

  static void moveTo(Operation *op, plan::RoutineOp routine, Block::iterator before) {
    op->moveBefore(&routine.getBody().front(), before);
    for (Value operand : op->getOperands())
      if (Operation *buffer = operand.getDefiningOp(); routine->isBeforeInBlock(buffer))
        buffer->moveBefore(routine);
  }

  const SmallVector<plan::CommandOpInterface> updates_;
  const bool isByLayer_;
  plan::RoutineOp start_;
  const StepOrder order_;
  Operation *last_ = nullptr; // that was moved
};

} // namespace

void ds::moveDelayedUpdates(plan::RoleOp role, llvm::function_ref<bool(plan::CommandOpInterface)> mayMove) {
  SmallVector<plan::CommandOpInterface> updates;
  for (auto routine : role.getOps<plan::RoutineOp>())
    if (routine.getPhase() == plan::Phase::Update)
      for (auto command : routine.getOps<plan::CommandOpInterface>())
        if (isUpdate(command) && pendingOf(command) && mayMove(command))
          updates.push_back(command);
  if (!updates.empty())
    Moves(role, std::move(updates)).run();
}
