//===- StepParameters.cpp - parameters that come to the device once a step ---===//
//
// 1. A parameter whose update the host makes lies elsewhere. Where the device reads it, it comes to a buffer of scope
//    step, once a run of a program: beside the first routine that uses it or, where that is called for several
//    micro-batches, from the start of the step on; beside the layer before, where micro-batches go through layers one
//    after another (StepStart.h).
// 2. Where the device only rounds it, the host does (HostRoundings.h), in front of all that the routine computes: what
//    is used first is rounded first, and comes first.
//
//===----------------------------------------------------------------------===//
#include "compiler/passes/offload/StepParameters.h"

#include "compiler/passes/offload/HostRoundings.h"
#include "compiler/passes/offload/OperandCopies.h"
#include "compiler/passes/offload/StepStart.h"

#include "mlir/IR/Builders.h"

#include "llvm/ADT/DenseSet.h"

using namespace mlir;
using namespace ds;

namespace {

/// Parameters that lie elsewhere between steps: each comes to a buffer of scope step in front of its first use in a
/// program, and the host updates it where it lies.
class StepParameters {
public:
  StepParameters(plan::RoleOp role, plan::MemorySpace space, int64_t leastBytes, bool hostLookups)
      : role_(role), members_(role.getContext()), space_(space), leastBytes_(leastBytes), hostLookups_(hostLookups),
        groups_(role) {}

  void run() {
    const llvm::SetVector<Operation *> moved =
        moveBuffers(role_, space_, [&](plan::BufferOp buffer) { return isOffloaded(buffer); });
    if (moved.empty())
      return;
    for (Operation *op : moved) {
      auto buffer = cast<plan::BufferOp>(op);
      members_.setInsertionPointAfter(buffer);
      near_[buffer] = makeNear(members_, buffer);
    }
    StepRoundings roundings(role_, groups_, [&](plan::CommandOpInterface command) { return isHostRounding(command); });
    for (auto routine : llvm::to_vector(role_.getOps<plan::RoutineOp>()))
      useNear(routine, roundings);
    roundings.eraseEmptied();
    for (Operation *buffer : moved)
      if (Value near = near_.lookup(buffer); near.use_empty())
        near.getDefiningOp()->erase();
  }

private:
  bool isOffloaded(plan::BufferOp buffer) {
    if (buffer.getScope() != plan::Scope::Plan || buffer.getCategory() != plan::Category::Weights ||
        int64_t(buffer.getBytes()) < leastBytes_)
      return false;
    bool updated = false;
    for (Operation *user : buffer->getUsers()) {
      auto command = dyn_cast<plan::CommandOpInterface>(user);
      if (!command || !isa<plan::KernelOp, plan::CollectiveOp>(user))
        return false;
      updated |= isHostUpdate(command);
      for (auto [index, operand] : llvm::enumerate(command.getBuffers()))
        if (operand == buffer.getBuffer() && command.writes(unsigned(index)) && !isHostUpdate(command))
          return false;
    }
    if (llvm::all_of(buffer->getUsers(), [&](Operation *user) {
          auto command = cast<plan::CommandOpInterface>(user);
          return isLeft(command, buffer) || (isRounding(user) && isCalledOnce(command));
        }))
      roundedOnly_.insert(buffer);
    const bool leaves = updated && findPlaces(buffer);
    if (!leaves)
      roundedOnly_.erase(buffer);
    return leaves;
  }

  /// Whether the host rounds a parameter that the device uses in no other way. By a routine that is called several
  /// times it would come as often.
  bool isHostRounding(plan::CommandOpInterface command) const {
    return isRounding(command) && roundedOnly_.contains(command.getBuffers()[0].getDefiningOp()) &&
           isCalledOnce(command);
  }

  /// Whether the host runs it, where the parameter lies: an update, a rounding, or a lookup of few rows. Where the
  /// lookup is of several micro-batches, its rows would come behind all that comes at the start.
  bool isLeft(plan::CommandOpInterface command, Value away) const {
    const std::optional<unsigned> table = lookedUpIn(command);
    return isHostUpdate(command) || isHostRounding(command) ||
           (hostLookups_ && table && command.getBuffers()[*table] == away && space_ == plan::MemorySpace::Host &&
            isCalledOnce(command));
  }

  bool isCalledOnce(plan::CommandOpInterface command) const {
    const Attribute routine = cast<plan::RoutineOp>(command->getParentOp()).getSymNameAttr();
    return llvm::all_of(plan::RoleOp(role_).getOps<plan::ProgramOp>(),
                        [&](plan::ProgramOp program) { return callsIn(program, routine) <= 1; });
  }

  bool isHostUpdate(plan::CommandOpInterface command) const {
    return isa<plan::KernelOp>(command.getOperation()) && llvm::any_of(command.getBuffers(), [&](Value operand) {
             return isStateAway(operand.getDefiningOp<plan::BufferOp>(), leastBytes_);
           });
  }

  /// Notes where a parameter comes: in front of the routine that uses it first in each program or, where that is called
  /// several times in a step, at the start of the step. False if it can do neither.
  bool findPlaces(plan::BufferOp buffer) {
    llvm::DenseSet<Attribute> users; // routines; looked up
    for (Operation *user : buffer->getUsers())
      if (!isLeft(cast<plan::CommandOpInterface>(user), buffer))
        users.insert(cast<plan::RoutineOp>(user->getParentOp()).getSymNameAttr());
    for (auto program : role_.getOps<plan::ProgramOp>()) {
      const auto calls = program.getOps<plan::CallOp>();
      const auto first =
          llvm::find_if(calls, [&](plan::CallOp call) { return users.contains(call.getRoutineAttr().getAttr()); });
      if (first == calls.end())
        continue;
      const Attribute routine = (*first).getRoutineAttr().getAttr();
      const bool often = callsIn(program, routine) > 1;
      if (often && (program.getName() != "step" || space_ != plan::MemorySpace::Host))
        return false;
      (often ? comesAtStart_ : comesIn_)[buffer].insert(routine);
    }
    return true;
  }

  /// What is read of host memory is issued at once, in the order of its use; what lies in a file, while the parameter
  /// before it is used.
  void useNear(plan::RoutineOp routine, StepRoundings &roundings) {
    if (routine.getBody().front().empty())
      return;
    members_.setInsertionPoint(routine);
    const Attribute name = routine.getSymNameAttr();
    Operation *front = behindLookups(
        routine, [&](Value buffer) { return near_.contains(buffer.getDefiningOp()); },
        [&](plan::CommandOpInterface command, Value away) { return isLeft(command, away); });
    while (isa<plan::CommandOpInterface>(front) && isHostRounding(cast<plan::CommandOpInterface>(front)))
      front = front->getNextNode();
    Operation *before = front, *last = front;
    llvm::DenseSet<Value> there;
    for (auto command : llvm::to_vector(routine.getOps<plan::CommandOpInterface>())) {
      if (isHostRounding(command))
        command->moveBefore(front);
      for (unsigned index = 0; index < command.getBuffers().size(); ++index) {
        roundings.moveFor(command.getBuffers()[index], routine);
        const Value away = command.getBuffers()[index], near = near_.lookup(away.getDefiningOp());
        if (!near || isLeft(command, away))
          continue;
        const bool starts = comesAtStart_.lookup(away.getDefiningOp()).contains(name);
        if ((starts || comesIn_.lookup(away.getDefiningOp()).contains(name)) && there.insert(away).second) {
          OpBuilder reads(before), comes(space_ == plan::MemorySpace::Host ? front : last);
          if (const std::optional<size_t> group = groups_.find(routine); starts && group)
            comes = OpBuilder::atBlockEnd(&groups_.startAheadOf(*group).getBody().front());
          else if (starts)
            comes = OpBuilder::atBlockEnd(&stepStart(role_).getBody().front());
          bringWhole(members_, command, index, near, reads, comes);
          before = last;
          last = command;
        }
        TensorPlace place = placeOf(command, index);
        place.buffer = near;
        setOperand(command, index, place);
      }
    }
  }

  plan::RoleOp role_;
  OpBuilder members_; // where buffers go
  const plan::MemorySpace space_;
  const int64_t leastBytes_;
  const bool hostLookups_;
  LayerGroups groups_;
  llvm::DenseSet<Operation *> roundedOnly_; // buffers that the device uses rounded; looked up
  llvm::DenseMap<Operation *, Value> near_; // by buffer; looked up
  // Routines that use a buffer first, by buffer; looked up.
  llvm::DenseMap<Operation *, llvm::SmallDenseSet<Attribute>> comesIn_, comesAtStart_;
};

} // namespace

plan::BufferOp ds::makeNear(OpBuilder &members, plan::BufferOp away) {
  return plan::BufferOp::create(members, away.getLoc(), away.getName(), plan::MemorySpace::Device, away.getBytes(),
                                plan::Scope::Step, plan::Category::Weights);
}

void ds::bringWhole(OpBuilder &members, plan::CommandOpInterface command, unsigned index, Value near, OpBuilder &reads,
                    OpBuilder &comes) {
  auto away = command.getBuffers()[index].getDefiningOp<plan::BufferOp>();
  const RankedTensorType type = command.getTensor(index);
  const RankedTensorType all = type.clone({int64_t(away.getBytes()) * 8 / type.getElementTypeBitWidth()});
  TensorPlace from{away};
  if (spaceOf(away) == plan::MemorySpace::Nvme) {
    from.buffer = plan::BufferOp::create(members, away.getLoc(), away.getName(), plan::MemorySpace::Host,
                                         away.getBytes(), plan::Scope::Call, plan::Category::Communication);
    copyTensor(reads, command, all, {away}, from);
  }
  copyTensor(comes, command, all, from, {near});
}

void ds::bringForStep(plan::RoleOp role, plan::MemorySpace space, int64_t leastBytes, bool hostLookups) {
  StepParameters(role, space, leastBytes, hostLookups).run();
}
