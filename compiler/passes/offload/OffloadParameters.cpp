//===- OffloadParameters.cpp - parameters lie elsewhere until a command reads them ---===//
//
// 1. Buffers of weights move to the arena of host memory or NVMe; what is small, or named by another command than a
//    kernel or a collective, stays.
// 2. A command that names one uses a buffer in device memory: a copy brings what it reads, another takes back what it
//    writes. An update that the host makes anyway is left to ds-run-on-host, which finds its parameter there, and
//    so is a lookup of few rows: they alone come to the device.
// 3. What is read comes while the parameter before it is used: one is in use, one is on its way. So device memory holds
//    the parameters of two commands. What takes longer than that over the machine's links comes earlier. What the
//    forward of a micro-batch reads last and its backward first is held in between.
// 4. Where all micro-batches go through a layer before the next one (StepStart.h), what its forwards read comes once
//    for all of them, beside those of the layer before, and so does what its backwards read. Device memory then holds
//    the parameters of two layers.
// 5. With for-step, what is read comes once a run of a program and stays for it (StepParameters below): beside
//    the first routine that uses it or, where that is called for several micro-batches, from the start of the step on;
//    beside the layer before, where micro-batches go through layers one after another.
// Rajbhandari et al., ZeRO-Infinity, SC 2021. Under ZeRO-3 a rank brings its slice, in front of the gather.
//
//===----------------------------------------------------------------------===//
#include "compiler/analysis/BufferUses.h"
#include "compiler/analysis/Cost.h"
#include "compiler/passes/offload/HeldOperands.h"
#include "compiler/passes/offload/OperandCopies.h"
#include "compiler/passes/offload/Passes.h"
#include "compiler/passes/offload/RoutineTimes.h"
#include "compiler/passes/offload/StepStart.h"
#include "dialects/Plan/Plan.h"

#include "mlir/IR/Builders.h"

namespace ds {
#define GEN_PASS_DEF_OFFLOADPARAMETERS
#include "compiler/passes/offload/Passes.h.inc"
} // namespace ds

using namespace mlir;
using namespace ds;

namespace {

/// A buffer in device memory for what stays there for several calls of a step.
plan::BufferOp makeNear(OpBuilder &members, plan::BufferOp away) {
  return plan::BufferOp::create(members, away.getLoc(), away.getName(), plan::MemorySpace::Device, away.getBytes(),
                                plan::Scope::Step, plan::Category::Weights);
}

/// All of the buffer of operand `index` of a command comes to `near`: from a file by way of host memory, for which
/// `reads` says where its copy stands.
void bringWhole(OpBuilder &members, plan::CommandOpInterface command, unsigned index, Value near, OpBuilder &reads,
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

/// The first op of a routine behind lookups on the host before which nothing that comes is used: their rows come first.
Operation *behindLookups(plan::RoutineOp routine, llvm::function_ref<bool(Value)> isAway,
                         llvm::function_ref<bool(plan::CommandOpInterface, Value)> isLeft) {
  Operation *front = &routine.getBody().front().front();
  for (auto command : routine.getOps<plan::CommandOpInterface>())
    for (Value buffer : command.getBuffers()) {
      if (!isAway(buffer))
        continue;
      if (!isLeft(command, buffer))
        return front;
      front = command->getNextNode() ? command->getNextNode() : front;
    }
  return front;
}

/// Moves the parameters of one role.
class ParameterMove {
public:
  ParameterMove(plan::RoleOp role, plan::MemorySpace space, int64_t leastBytes, bool hostUpdates, bool hostLookups)
      : role_(role), members_(role.getContext()), space_(space), leastBytes_(leastBytes), hostUpdates_(hostUpdates),
        hostLookups_(hostLookups), link_(linkSpeed(role, "device-host")), nvme_(linkSpeed(role, "host-nvme")),
        groups_(role) {}

  void run() {
    moved_ = moveBuffers(role_, space_, [&](plan::BufferOp buffer) { return isParameterAway(buffer, leastBytes_); });
    for (size_t group = 0; group < groups_.routines().size(); ++group)
      bringForGroup(group, groups_.routines()[group]);
    if (groups_.empty())
      held_ = findHeld(
          role_, [&](plan::RoutineOp routine) { return usersIn(routine); },
          [&](Value buffer) { return isMoved(buffer); });
    for (auto routine : role_.getOps<plan::RoutineOp>())
      bringParameters(routine);
  }

private:
  /// What all calls of a routine read. What the group before it read, too, is still there.
  void bringForGroup(size_t group, plan::RoutineOp routine) {
    llvm::DenseMap<Value, Value> near; // by buffer; looked up
    for (auto command : routine.getOps<plan::CommandOpInterface>())
      for (unsigned index = 0; index < command.getBuffers().size(); ++index) {
        const Value away = command.getBuffers()[index];
        if (!isMoved(away) || isLeft(command))
          continue;
        Value &there = near[away];
        if (!there)
          there = nearBefore_.lookup(away);
        if (!there)
          there = bringAhead(group, command, index);
        TensorPlace place = placeOf(command, index);
        place.buffer = there;
        setOperand(command, index, place);
      }
    nearBefore_ = std::move(near);
  }

  Value bringAhead(size_t group, plan::CommandOpInterface command, unsigned index) {
    auto away = command.getBuffers()[index].getDefiningOp<plan::BufferOp>();
    members_.setInsertionPointAfter(away);
    const Value near = makeNear(members_, away);
    OpBuilder start = OpBuilder::atBlockEnd(&groups_.startAheadOf(group).getBody().front());
    bringWhole(members_, command, index, near, start, start);
    return near;
  }

  bool isMoved(Value buffer) const { return moved_.contains(buffer.getDefiningOp()); }

  /// Whether the optimizer state of an update stays in device memory, where it is made then.
  static bool stays(plan::CommandOpInterface update) {
    return llvm::any_of(update.getBuffers(),
                        [](Value operand) { return operand.getDefiningOp<plan::BufferOp>().getStays(); });
  }

  /// Whether the host runs it, where the parameter lies.
  bool isLeft(plan::CommandOpInterface command) const {
    const std::optional<unsigned> table = lookedUpIn(command);
    return (hostUpdates_ && isUpdate(command) && !stays(command)) ||
           (hostLookups_ && table && isMoved(command.getBuffers()[*table]) && space_ == plan::MemorySpace::Host);
  }

  /// Commands that use a parameter in device memory.
  SmallVector<plan::CommandOpInterface> usersIn(plan::RoutineOp routine) const {
    SmallVector<plan::CommandOpInterface> users;
    for (auto command : routine.getOps<plan::CommandOpInterface>())
      if (llvm::any_of(command.getBuffers(), [&](Value buffer) { return isMoved(buffer); }) && !isLeft(command) &&
          !isa<plan::CopyOp>(command.getOperation())) // of a start
        users.push_back(command);
    return users;
  }

  void bringParameters(plan::RoutineOp routine) {
    members_.setInsertionPoint(routine);
    const SmallVector<plan::CommandOpInterface> users = usersIn(routine);
    const SmallVector<Starts> latest = latestStarts(routine, users);
    Operation *front = behindLookups(
        routine, [&](Value buffer) { return isMoved(buffer); },
        [&](plan::CommandOpInterface command, Value) { return isLeft(command); });
    Operation *before = front, *last = front; // the users of the two parameters before
    for (auto [user, starts] : llvm::zip(users, latest)) {
      plan::CommandOpInterface command = user;
      const bool isKnown = !readsWhatIsWritten(command);
      Operation *come = later(earlier(starts.come, last), front);
      bring(command, isKnown ? earlier(earlier(starts.read, before), come) : command.getOperation(),
            isKnown ? come : command.getOperation());
      before = last;
      last = command;
    }
  }

  /// Whether a command before it, in its routine, writes a parameter that it uses: then what it reads cannot come
  /// earlier.
  bool readsWhatIsWritten(plan::CommandOpInterface command) const {
    return llvm::any_of(command.getBuffers(), [&](Value buffer) {
      return isMoved(buffer) && llvm::any_of(buffer.getUses(), [&](OpOperand &use) {
               auto other = dyn_cast<plan::CommandOpInterface>(use.getOwner());
               return other && other->getBlock() == command->getBlock() && other->isBeforeInBlock(command) &&
                      other.writes(use.getOperandNumber()) && conflict(other, command);
             });
    });
  }

  static Operation *earlier(Operation *a, Operation *b) { return a->isBeforeInBlock(b) ? a : b; }
  static Operation *later(Operation *a, Operation *b) { return earlier(a, b) == a ? b : a; }

  /// In front of which ops the copies have to begin at the latest that bring what a command reads.
  struct Starts {
    Operation *read, *come; ///< from a file to host memory; from there to the device
  };

  /// Of each user, one after another, by the clock of the cost model; where a link is unknown, at its user.
  SmallVector<Starts> latestStarts(plan::RoutineOp routine, ArrayRef<plan::CommandOpInterface> users) const {
    const RoutineTimes times(routine, [&](plan::CommandOpInterface command) { return isLeft(command); });
    const auto at = [&](double seconds, const LinkSpeed &link, Operation *user) {
      return link.bytesPerSecond > 0 ? times.at(seconds) : user;
    };
    const auto secondsOf = [](const LinkSpeed &link, double bytes) {
      return link.bytesPerSecond > 0 ? link.seconds(bytes) : 0;
    };
    SmallVector<Starts> starts(users.size());
    double come = times.end(), read = come; // when the copies behind begin
    for (size_t i = users.size(); i-- > 0;) {
      plan::CommandOpInterface user = users[i];
      double bytes = 0;
      for (auto [index, buffer] : llvm::enumerate(user.getBuffers()))
        if (isMoved(buffer) && user.reads(unsigned(index)))
          bytes += double(plan::tensorBytes(user.getTensor(unsigned(index))));
      come = std::min(come, times.begin(times.indexOf(user))) - secondsOf(link_, bytes);
      read = std::min(read, come) - secondsOf(nvme_, bytes);
      starts[i] = {.read = at(read, nvme_, user), .come = at(come, link_, user)};
    }
    return starts;
  }

  /// Copies from a file are issued in front of `read`, those from host memory in front of `come`.
  void bring(plan::CommandOpInterface command, Operation *read, Operation *come) {
    SmallVector<Value> buffers = llvm::to_vector(command.getBuffers());
    for (unsigned index = 0; index < buffers.size(); ++index)
      if (isMoved(buffers[index]))
        buffers[index] = bring(command, index, read, come);
    setBuffers(command, buffers);
  }

  Value bring(plan::CommandOpInterface command, unsigned index, Operation *read, Operation *come) {
    const Value away = command.getBuffers()[index];
    if (const auto held = held_.find({command, index}); held != held_.end())
      if (const Value there = near_.lookup(held->second)) {
        there.getDefiningOp<plan::BufferOp>().setScope(plan::Scope::Slot);
        return there;
      }
    const Value near = makeBuffer(members_, command, index, plan::MemorySpace::Device);
    near_[{command, index}] = near;
    const Value there =
        space_ == plan::MemorySpace::Nvme ? makeBuffer(members_, command, index, plan::MemorySpace::Host) : Value();
    OpBuilder reads(read), comes(come), leaves(command->getContext());
    leaves.setInsertionPointAfter(awaitOf(command));
    if (command.reads(index) && there)
      copyOperand(reads, command, index, away, there);
    if (command.reads(index))
      there ? copyWhole(comes, command, index, there, near) : copyOperand(comes, command, index, away, near);
    if (command.writes(index) && there)
      copyWhole(leaves, command, index, near, there);
    if (command.writes(index))
      copyOperand(leaves, command, index, there ? there : near, away);
    return near;
  }

  plan::RoleOp role_;
  OpBuilder members_; // where buffers go
  const plan::MemorySpace space_;
  const int64_t leastBytes_;
  const bool hostUpdates_, hostLookups_;
  const LinkSpeed link_, nvme_;
  LayerGroups groups_;
  llvm::DenseMap<Value, Value> nearBefore_;     // what the group before reads, by buffer; looked up
  llvm::DenseMap<OperandUse, OperandUse> held_; // looked up
  llvm::DenseMap<OperandUse, Value> near_;      // where what is used lies in device memory; looked up
  llvm::SetVector<Operation *> moved_;          // buffers
};

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
    for (auto routine : llvm::to_vector(role_.getOps<plan::RoutineOp>()))
      useNear(routine);
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
    return updated && findPlaces(buffer);
  }

  /// Whether the host runs it, where the parameter lies: an update, or a lookup of few rows. Where the lookup is of
  /// several micro-batches, its rows would come behind all that comes at the start.
  bool isLeft(plan::CommandOpInterface command, Value away) const {
    const std::optional<unsigned> table = lookedUpIn(command);
    return isHostUpdate(command) || (hostLookups_ && table && command.getBuffers()[*table] == away &&
                                     space_ == plan::MemorySpace::Host && isCalledOnce(command));
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
  void useNear(plan::RoutineOp routine) {
    members_.setInsertionPoint(routine);
    const Attribute name = routine.getSymNameAttr();
    Operation *front = behindLookups(
        routine, [&](Value buffer) { return near_.contains(buffer.getDefiningOp()); },
        [&](plan::CommandOpInterface command, Value away) { return isLeft(command, away); });
    Operation *before = front, *last = front;
    llvm::DenseSet<Value> there;
    for (auto command : llvm::to_vector(routine.getOps<plan::CommandOpInterface>()))
      for (unsigned index = 0; index < command.getBuffers().size(); ++index) {
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

  plan::RoleOp role_;
  OpBuilder members_; // where buffers go
  const plan::MemorySpace space_;
  const int64_t leastBytes_;
  const bool hostLookups_;
  LayerGroups groups_;
  llvm::DenseMap<Operation *, Value> near_; // by buffer; looked up
  // Routines that use a buffer first, by buffer; looked up.
  llvm::DenseMap<Operation *, llvm::SmallDenseSet<Attribute>> comesIn_, comesAtStart_;
};

struct OffloadParameters : ds::impl::OffloadParametersBase<OffloadParameters> {
  using OffloadParametersBase::OffloadParametersBase;

  void runOnOperation() override {
    const FailureOr<plan::MemorySpace> where = spaceAway(getOperation(), space, leastBytes);
    if (failed(where))
      return signalPassFailure();
    for (auto role : getOperation().getOps<plan::RoleOp>())
      if (forStep)
        StepParameters(role, *where, leastBytes, hostLookups).run();
      else
        ParameterMove(role, *where, leastBytes, hostUpdates, hostLookups).run();
  }
};

} // namespace
