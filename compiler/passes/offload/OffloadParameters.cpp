//===- OffloadParameters.cpp - parameters lie elsewhere until a command reads them ---===//
//
// 1. Buffers of weights move to the arena of host memory or NVMe; what is small, or named by another command than a
//    kernel or a collective, stays.
// 2. A command that names one uses a buffer in device memory: a copy brings what it reads, another takes back what it
//    writes. An update that the host makes anyway is left to ds-run-on-host, which finds its parameter there, and
//    so is a lookup of few rows: they alone come to the device. So is a rounding (HostRoundings.h): what it makes lies
//    on the host, too, and comes instead of the parameter.
// 3. What is read comes while the parameter before it is used: one is in use, one is on its way. So device memory holds
//    the parameters of two commands. What takes longer than that over the machine's links comes earlier. What the
//    forward of a micro-batch reads last and its backward first is held in between.
// 4. Where all micro-batches go through a layer before the next one (StepStart.h), what its forwards read comes once
//    for all of them, beside those of the layer before, and so does what its backwards read. Device memory then holds
//    the parameters of two layers.
// 5. With for-step, what is read comes once a run of a program and stays for it (StepParameters.h).
// Rajbhandari et al., ZeRO-Infinity, SC 2021. Under ZeRO-3 a rank brings its slice, in front of the gather.
//
//===----------------------------------------------------------------------===//
#include "compiler/analysis/BufferUses.h"
#include "compiler/analysis/Cost.h"
#include "compiler/analysis/KernelSelection.h"
#include "compiler/passes/offload/HeldOperands.h"
#include "compiler/passes/offload/HostRoundings.h"
#include "compiler/passes/offload/OperandCopies.h"
#include "compiler/passes/offload/Passes.h"
#include "compiler/passes/offload/RoutineTimes.h"
#include "compiler/passes/offload/StepParameters.h"
#include "dialects/Plan/Plan.h"

#include "mlir/IR/Builders.h"

namespace ds {
#define GEN_PASS_DEF_OFFLOADPARAMETERS
#include "compiler/passes/offload/Passes.h.inc"
} // namespace ds

using namespace mlir;
using namespace ds;

namespace {

/// Moves the parameters of one role.
class ParameterMove {
public:
  ParameterMove(plan::RoleOp role, plan::MemorySpace space, int64_t leastBytes, bool hostUpdates, bool hostLookups,
                int64_t readAhead)
      : role_(role), members_(role.getContext()), space_(space), leastBytes_(leastBytes), readAhead_(readAhead),
        hostUpdates_(hostUpdates), hostLookups_(hostLookups), link_(linkSpeed(role, "device-host")),
        nvme_(linkSpeed(role, "host-nvme")), groups_(role) {}

  void run() {
    moved_ = moveBuffers(role_, space_, [&](plan::BufferOp buffer) { return isParameterAway(buffer, leastBytes_); });
    moveRounded();
    moveStepRoundings();
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

  //===-- what is rounded ------------------------------------------------------------===//

  /// What roundings make of parameters: for one call it lies in host memory, for a step where parameters do.
  void moveRounded() {
    for (bool found = true; std::exchange(found, false);)
      for (auto routine : role_.getOps<plan::RoutineOp>())
        for (auto kernel : routine.getOps<plan::KernelOp>())
          if (makesRounded(kernel) && isMadeByHost(kernel.getBuffers()[1])) {
            auto buffer = kernel.getBuffers()[1].getDefiningOp<plan::BufferOp>();
            found |= makers_.try_emplace(buffer, kernel).second;
            moved_.insert(buffer);
            buffer.setArena(
                stringifyMemorySpace(buffer.getScope() == plan::Scope::Call ? plan::MemorySpace::Host : space_));
          }
  }

  /// Whether a kernel rounds a parameter that has moved, or copies what was made so.
  bool makesRounded(plan::KernelOp kernel) const {
    const Value from = kernel.getBuffers()[0];
    return isMoved(from) && (isRounded(from) ? isCopy(kernel) : isRounding(kernel));
  }

  /// Whether such kernels alone write a buffer, and commands that can have a copy of it on the device read it. What the
  /// calls of a group read comes in front of them all, so none of them makes it.
  bool isMadeByHost(Value made) const {
    const plan::Scope scope = made.getDefiningOp<plan::BufferOp>().getScope();
    return (scope == plan::Scope::Call || scope == plan::Scope::Step) &&
           llvm::all_of(made.getUses(), [&](OpOperand &use) {
             auto command = cast<plan::CommandOpInterface>(use.getOwner());
             auto kernel = dyn_cast<plan::KernelOp>(use.getOwner());
             const bool isHere = scope == plan::Scope::Step || !groups_.find(command->getParentOp());
             return isHere &&
                    (command.writes(use.getOperandNumber()) ? kernel && makesRounded(kernel)
                                                            : isa<plan::KernelOp, plan::CollectiveOp>(use.getOwner()));
           });
  }

  bool isRounded(Value buffer) const { return makers_.contains(buffer.getDefiningOp()); }

  void moveStepRoundings() {
    StepRoundings roundings(role_, groups_, [&](plan::CommandOpInterface command) { return isLeft(command); });
    for (auto routine : llvm::to_vector(role_.getOps<plan::RoutineOp>()))
      for (auto command : llvm::to_vector(routine.getOps<plan::CommandOpInterface>()))
        for (Value buffer : command.getBuffers())
          roundings.moveFor(buffer, routine);
    roundings.eraseEmptied();
  }

  /// A rounding that is in no routine for now, and how long it takes.
  struct Waiting {
    Operation *rounding = nullptr;
    double seconds = 0;
  };

  /// Takes the roundings out of a routine whose results its commands use on the device alone: each returns in front of
  /// the copy of what it makes.
  void takeRoundings(ArrayRef<plan::CommandOpInterface> users) {
    waiting_.clear();
    for (plan::CommandOpInterface user : users)
      for (Value buffer : user.getBuffers()) {
        Operation *maker = makers_.lookup(buffer.getDefiningOp());
        if (!maker || maker->getBlock() != user->getBlock() ||
            buffer.getDefiningOp<plan::BufferOp>().getScope() != plan::Scope::Call)
          continue;
        if (llvm::all_of(buffer.getUsers(), [&](Operation *other) {
              return other == maker || !isLeft(cast<plan::CommandOpInterface>(other));
            })) {
          waiting_[buffer] = {maker, secondsOnHost(cast<plan::CommandOpInterface>(maker))};
          maker->remove();
        }
      }
  }

  //===-- what the device uses -------------------------------------------------------===//

  /// Whether the optimizer state of an update stays in device memory, where it is made then.
  static bool stays(plan::CommandOpInterface update) {
    return llvm::any_of(update.getBuffers(),
                        [](Value operand) { return operand.getDefiningOp<plan::BufferOp>().getStays(); });
  }

  /// Whether the host runs it, where the parameter lies.
  bool isLeft(plan::CommandOpInterface command) const {
    const std::optional<unsigned> table = lookedUpIn(command);
    for (auto [index, buffer] : llvm::enumerate(command.getBuffers()))
      if (command.writes(unsigned(index)) && isRounded(buffer))
        return true;
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
    takeRoundings(users);
    here_.clear();
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
      return isMoved(buffer) && !isRounded(buffer) && llvm::any_of(buffer.getUses(), [&](OpOperand &use) {
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

  /// Of each user, one after another, by the clock of the cost model; where a link is unknown, at its user. What is
  /// read from files early waits in host memory: not more than `readAhead_`, or than what one user reads.
  SmallVector<Starts> latestStarts(plan::RoutineOp routine, ArrayRef<plan::CommandOpInterface> users) const {
    const RoutineTimes times(routine, [&](plan::CommandOpInterface command) { return isLeft(command); });
    const LinkSpeed &source = space_ == plan::MemorySpace::Nvme ? nvme_ : link_;
    const auto at = [&](double seconds, const LinkSpeed &link, Operation *user) {
      return link.bytesPerSecond > 0 ? times.at(seconds) : user;
    };
    const auto secondsOf = [](const LinkSpeed &link, double bytes) {
      return link.bytesPerSecond > 0 && bytes > 0 ? link.seconds(bytes) : 0;
    };
    const SmallVector<Coming> coming = comingFor(users);
    SmallVector<Starts> starts(users.size());
    double come = times.end(), read = come; // when the copies behind begin
    for (size_t i = users.size(); i-- > 0;) {
      plan::CommandOpInterface user = users[i];
      come = std::min(come, times.begin(times.indexOf(user))) - secondsOf(link_, coming[i].bytes);
      read = std::min(read, come) - coming[i].rounding - secondsOf(nvme_, coming[i].fileBytes);
      starts[i] = {.read = at(read, source, user), .come = at(come, link_, user)};
    }
    double waiting = 0; // bytes from files for the users from `first` on
    for (size_t i = 0, first = 0; i < users.size(); ++i) {
      waiting += coming[i].fileBytes;
      while (first < i && waiting > double(readAhead_))
        waiting -= coming[first++].fileBytes;
      starts[i].read = later(starts[i].read, users[first]);
    }
    return starts;
  }

  /// What has to come for a command: bytes over the link, bytes from a file, and seconds to round it.
  struct Coming {
    double bytes = 0, fileBytes = 0, rounding = 0;
  };

  /// Of each user; what is rounded comes once.
  SmallVector<Coming> comingFor(ArrayRef<plan::CommandOpInterface> users) const {
    SmallVector<Coming> all(users.size());
    llvm::DenseSet<Value> came; // rounded; looked up
    for (auto [user, coming] : llvm::zip(users, all)) {
      plan::CommandOpInterface command = user;
      for (auto [index, buffer] : llvm::enumerate(command.getBuffers())) {
        if (!isMoved(buffer) || !command.reads(unsigned(index)) || (isRounded(buffer) && !came.insert(buffer).second))
          continue;
        const auto bytes = double(plan::tensorBytes(command.getTensor(unsigned(index))));
        coming.bytes += bytes;
        if (const Waiting waiting = waiting_.lookup(buffer); waiting.rounding) {
          coming.rounding += waiting.seconds;
          if (space_ == plan::MemorySpace::Nvme)
            coming.fileBytes +=
                double(plan::tensorBytes(cast<plan::CommandOpInterface>(waiting.rounding).getTensor(0)));
        } else if (spaceOf(buffer) == plan::MemorySpace::Nvme)
          coming.fileBytes += bytes;
      }
    }
    return all;
  }

  /// Copies from a file are issued in front of `read`, those from host memory in front of `come`.
  void bring(plan::CommandOpInterface command, Operation *read, Operation *come) {
    SmallVector<Value> buffers = llvm::to_vector(command.getBuffers());
    for (unsigned index = 0; index < buffers.size(); ++index)
      if (isMoved(buffers[index]))
        buffers[index] = bring(command, index, read, come);
    setBuffers(command, buffers);
  }

  /// What is rounded stays up to its last use in the routine.
  Value bring(plan::CommandOpInterface command, unsigned index, Operation *read, Operation *come) {
    const Value away = command.getBuffers()[index];
    if (!isRounded(away) || command.getByteRange(index) != wholeOf(away))
      return near_[{command, index}] = bringAnew(command, index, read, come);
    Value &here = here_[away];
    if (!here)
      here = bringAnew(command, index, read, come);
    return near_[{command, index}] = here;
  }

  static std::pair<int64_t, int64_t> wholeOf(Value buffer) {
    return {0, int64_t(buffer.getDefiningOp<plan::BufferOp>().getBytes())};
  }

  Value bringAnew(plan::CommandOpInterface command, unsigned index, Operation *read, Operation *come) {
    const Value away = command.getBuffers()[index];
    if (const auto held = held_.find({command, index}); held != held_.end())
      if (const Value there = near_.lookup(held->second)) {
        there.getDefiningOp<plan::BufferOp>().setScope(plan::Scope::Slot);
        return there;
      }
    if (Operation *rounding = waiting_.lookup(away).rounding; rounding && !rounding->getBlock())
      read->getBlock()->getOperations().insert(read->getIterator(), rounding);
    const Value near = makeBuffer(members_, command, index, plan::MemorySpace::Device);
    const Value there = spaceOf(away) == plan::MemorySpace::Nvme
                            ? makeBuffer(members_, command, index, plan::MemorySpace::Host)
                            : Value();
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
  const int64_t leastBytes_, readAhead_;
  const bool hostUpdates_, hostLookups_;
  const LinkSpeed link_, nvme_;
  LayerGroups groups_;
  llvm::DenseMap<Value, Value> nearBefore_;         // what the group before reads, by buffer; looked up
  llvm::DenseMap<OperandUse, OperandUse> held_;     // looked up
  llvm::DenseMap<OperandUse, Value> near_;          // where what is used lies in device memory; looked up
  llvm::SetVector<Operation *> moved_;              // buffers
  llvm::DenseMap<Operation *, Operation *> makers_; // of those that hold what is rounded; looked up
  // Of one routine, by what is rounded; looked up.
  llvm::DenseMap<Value, Waiting> waiting_; // roundings that return to it
  llvm::DenseMap<Value, Value> here_;      // where it lies in device memory
};

struct OffloadParameters : ds::impl::OffloadParametersBase<OffloadParameters> {
  using OffloadParametersBase::OffloadParametersBase;

  void runOnOperation() override {
    const FailureOr<plan::MemorySpace> where = spaceAway(getOperation(), space, leastBytes);
    if (failed(where))
      return signalPassFailure();
    for (auto role : getOperation().getOps<plan::RoleOp>())
      if (forStep)
        bringForStep(role, *where, leastBytes, hostLookups);
      else
        ParameterMove(role, *where, leastBytes, hostUpdates, hostLookups, readAhead).run();
  }
};

} // namespace
