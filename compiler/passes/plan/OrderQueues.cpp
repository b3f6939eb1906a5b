//===- OrderQueues.cpp - queues that run beside compute, ordered by events --===//
//
// Before, all commands of a routine run one after another on the compute queue. Feeds go to the copy-in queue, each
// message to its channel's, a collective that has a token to the collective queue, a copy to device memory to queue
// "fetch" and one out of it to queue "evict", a copy between host memory and NVMe to queue "nvme_read" or "nvme_write",
// a kernel, a fill or a copy within host memory to queue "host_compute". What was the order of the routine becomes
// events, one pair at a time, as CUDA programs order streams (cudaEventRecord, cudaStreamWaitEvent):
//
//   - a command of another queue waits for the compute command before it;
//   - compute waits for a collective where it is awaited, for a message of what has one copy at once, and for either
//     before it first touches the same bytes, one of the two writing, as does a command of a third queue;
//   - who first reads what was fed or received waits for it; the last routine of a micro-batch that reads it signals
//     that the slot is free, for which the feed or receive of a later micro-batch waits (InFlight.h);
//   - compute waits for a copy out of device memory when it should have ended, so that the bytes it reads are free
//     again; where that is unknown, when the next but one begins; and for all of a routine's at its end;
//   - compute waits for a kernel on the host and for a copy to a file likewise, but when it should have ended were it
//     many times slower (`patience`): they hold host memory alone, and drives now and then are much slower than on
//     average; in an update, with the copies around each, they are two at once: copies for the next begin when the last
//     but one is back in device memory; three, where a file is read and written, so that one is read while one is
//     computed and one is written; compute waits for all at the end of the routine;
//   - copies to device memory at the beginning of a step are waited for by who first uses them, in whatever routine; so
//     is what the backward reads from a file for the update (ReadAhead.cpp), and an update by the gradient of the step
//     before (DelayedUpdates.h);
//   - where a step has several starts, between layers that all micro-batches go through (StepStart.h), so is all that a
//     start issues; at the latest compute waits for it two starts later, or at the end of the update;
//   - the routine that writes what is sent waits until the message that left from the same slot is sent, as does every
//     other routine that uses it; a message waits for copies and messages from the same slot that are issued before it.
//
// Queues and events are one pass: with the queues alone a plan would be a race. Where a routine has no compute command
// to wait or signal, a fill of nothing takes its place.
//
//===----------------------------------------------------------------------===//
#include "compiler/analysis/BufferUses.h"
#include "compiler/analysis/Cost.h"
#include "compiler/analysis/InFlight.h"
#include "compiler/analysis/Routines.h"
#include "compiler/passes/plan/Passes.h"
#include "compiler/passes/plan/RoleSteps.h"
#include "dialects/Plan/Plan.h"

#include "mlir/IR/Builders.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringMap.h"

#include <limits>

namespace ds {
#define GEN_PASS_DEF_ORDERQUEUES
#include "compiler/passes/plan/Passes.h.inc"
} // namespace ds

using namespace mlir;
using namespace ds;

namespace {

class RoleQueues {
public:
  RoleQueues(plan::RoleOp role, double patience)
      : role_(role), patience_(patience), inFlight_(role), members_(role.getContext()),
        host_(linkSpeed(role, "device-host")), nvme_(linkSpeed(role, "host-nvme")) {}

  void run() {
    for (auto buffer : role_.getOps<plan::BufferOp>())
      if (buffer.getScope() == plan::Scope::Slot)
        buffer.setSlots(inFlight_.slots(buffer));
    makeQueues();
    noteCalls();
    auto routines = llvm::to_vector(role_.getOps<plan::RoutineOp>());
    size_t start = 0; // one after another, as they are called
    for (plan::RoutineOp &routine : routines)
      if (llvm::is_contained(starts_, routine))
        routine = starts_[start++];
    for (const bool begins : {true, false}) // what a step begins with is waited for in others
      for (plan::RoutineOp routine : routines)
        if ((routine.getPhase() == plan::Phase::Begin) == begins) {
          orderRoutine(routine);
          orderSlots(routine);
        }
  }

private:
  /// A command on another queue than compute, which compute has not waited for yet.
  struct UnderWay {
    plan::CommandOpInterface command;
    std::string done;           ///< event
    int64_t turn;               ///< of kernels on the host
    StringRef queue;            ///< its name
    double issued = 0, end = 0; ///< by the cost model: seconds from the start of the routine
    size_t start = 0;           ///< that issued it, of those of the step

    /// When compute waits for it, where the clock says. What leaves the device frees its memory; the rest holds host
    /// memory alone, and has time to be `patience` times slower than the model says.
    double awaited(double patience) const { return isOn(evictQueue) ? end : issued + patience * (end - issued); }
    bool isCarried() const { return turn == noTurn; }
    bool meets(plan::CommandOpInterface other) const { return conflict(command, other); }
    /// Whether a message leaves from what both use: its last use is one command's.
    bool leavesWith(plan::CommandOpInterface other) const {
      return (isa<plan::SendOp>(command) || isa<plan::SendOp>(other)) &&
             llvm::any_of(plan::CommandOpInterface(command).getBuffers(), [&](Value operand) {
               return operand.getDefiningOp<plan::BufferOp>().getScope() == plan::Scope::Slot &&
                      llvm::is_contained(other.getBuffers(), operand);
             });
    }
    bool isOn(StringRef name) const { return queue == name; }
  };

  static constexpr StringRef fetchQueue = "fetch", evictQueue = "evict", hostQueue = "host_compute",
                             readQueue = "nvme_read", writeQueue = "nvme_write";
  static constexpr StringRef transferQueues[] = {fetchQueue, evictQueue, hostQueue, readQueue, writeQueue};
  static constexpr int64_t copiesUnderWay = 2;
  static constexpr size_t startsUnderWay = 2;
  static constexpr int64_t noTurn = std::numeric_limits<int64_t>::max();

  //===-- queues and events of the role -------------------------------------------===//

  void makeQueues() {
    members_.setInsertionPointAfter(*role_.getOps<plan::QueueOp>().begin());
    makeQueue("copy_in", plan::QueueKind::CopyIn, role_.getLoc());
    bool asynchronous = false, transfers = false;
    role_.walk([&](plan::CollectiveOp collective) { asynchronous |= bool(collective.getToken()); });
    role_.walk([&](plan::CopyOp copy) {
      transfers |= changesSpace(copy);
      usesFile_ |= touchesFile(copy);
    });
    if (transfers) { // beside feeds, which may wait for what the step is to do after a transfer
      makeQueue(fetchQueue, plan::QueueKind::CopyIn, role_.getLoc());
      makeQueue(evictQueue, plan::QueueKind::CopyOut, role_.getLoc());
    }
    if (usesFile_) {
      makeQueue(readQueue, plan::QueueKind::Io, role_.getLoc());
      makeQueue(writeQueue, plan::QueueKind::Io, role_.getLoc());
    }
    bool computesOnHost = false;
    role_.walk([&](plan::CommandOpInterface command) { computesOnHost |= computesInHostMemory(command); });
    if (computesOnHost)
      makeQueue(hostQueue, plan::QueueKind::Host, role_.getLoc());
    if (asynchronous)
      makeQueue("collective", plan::QueueKind::Collective, role_.getLoc());
    for (const auto &[op, arrival] : inFlight_.arrivals()) {
      if (auto receive = dyn_cast<plan::ReceiveOp>(op))
        makeQueue(receive.getChannel(), plan::QueueKind::Message, op->getLoc());
      plan::EventOp::create(members_, op->getLoc(), arrival.ready);
      plan::EventOp::create(members_, op->getLoc(), arrival.freed);
    }
    for (const auto &[op, departure] : inFlight_.departures()) {
      makeQueue(cast<plan::SendOp>(op).getChannel(), plan::QueueKind::Message, op->getLoc());
      plan::EventOp::create(members_, op->getLoc(), departure.sent);
    }
  }

  void makeQueue(StringRef name, plan::QueueKind kind, Location location) {
    plan::QueueOp::create(members_, location, name, kind);
  }

  std::string makeEvent(StringRef kind) {
    std::string event = (kind + "_" + std::to_string(events_++)).str();
    plan::EventOp::create(members_, role_.getLoc(), event);
    return event;
  }

  //===-- within a routine ---------------------------------------------------------===//

  void orderRoutine(plan::RoutineOp routine) {
    routine_ = routine;
    phase_ = routine.getPhase();
    lastCompute_ = {};
    ready_.clear();
    isStart_ = llvm::is_contained(starts_, routine) && lastMicrobatch_ > 0;
    underWay_ = carriedTo(routine);
    uses_.clear();
    for (const UnderWay &other : underWay_)
      countUses(other, 1);
    due_.clear();
    turn_ = 0;
    ranOnHost_ = false;
    clock_ = 0;
    queueEnds_.clear();
    if (isStart_)
      awaitStartsBefore(routine);
    Block &body = routine.getBody().front();
    SmallVector<plan::CollectiveOp> tokens;
    for (Operation &op : llvm::make_early_inc_range(body)) {
      auto command = dyn_cast<plan::CommandOpInterface>(op);
      if (auto await = dyn_cast<plan::AwaitOp>(op))
        awaitToken(await);
      else if (isa<plan::FeedOp, plan::ReceiveOp>(op))
        orderArrival(command);
      else if (auto send = dyn_cast<plan::SendOp>(op))
        orderSend(send);
      else if (auto copy = dyn_cast<plan::CopyOp>(op); copy && changesSpace(copy))
        orderTransfer(copy);
      else if (command && computesInHostMemory(command))
        orderHostKernel(command);
      else if (auto collective = dyn_cast<plan::CollectiveOp>(op); collective && collective.getToken()) {
        beside(command, "collective");
        tokens.push_back(collective);
      } else
        orderCompute(command);
    }
    makeDueWhere([&](const UnderWay &other) {
      return other.isCarried() ? phase_ == plan::Phase::Update
                               : !isStart_ && (other.isOn(evictQueue) || other.isOn(writeQueue));
    });
    if (!isStart_ && (turn_ > 0 || ranOnHost_))
      awaitTurnsBefore(turn_ + 1);
    if (!due_.empty())
      join(body.end());
    for (plan::CollectiveOp collective : tokens)
      dropToken(collective);
    noteLeft();
  }

  /// The routines of the step, and its starts: those of phase begin whose events count all micro-batches at once.
  void noteCalls() {
    const Routines routines(role_);
    for (auto program : role_.getOps<plan::ProgramOp>())
      for (auto call : program.getOps<plan::CallOp>())
        if (program.getName() == "step") {
          const int64_t microbatch = int64_t(call.getMicrobatch());
          lastMicrobatch_ = std::max(lastMicrobatch_, microbatch);
          lastMicrobatches_[routines.of(call)] = microbatch;
        }
    for (auto [place, call] : llvm::enumerate(lastMicrobatches_)) {
      places_[call.first] = place;
      if (auto routine = cast<plan::RoutineOp>(call.first);
          routine.getPhase() == plan::Phase::Begin && call.second == lastMicrobatch_)
        starts_.push_back(routine);
    }
  }

  /// What routines called before one of the step have left, and nobody called before it waits for.
  SmallVector<UnderWay> carriedTo(plan::RoutineOp routine) const {
    const auto place = places_.find(routine);
    if (place == places_.end())
      return {};
    SmallVector<UnderWay> carried;
    for (plan::RoutineOp start : starts_)
      if (places_.lookup(start) < place->second)
        carried = left_.lookup(start);
    for (const auto &[before, left] : left_)
      if (!llvm::is_contained(starts_, before) && places_.lookup(before) < place->second)
        llvm::append_range(carried, left);
    llvm::erase_if(carried, [&](const UnderWay &other) {
      const auto waiter = awaited_.find(other.done);
      return waiter != awaited_.end() && waiter->second < place->second;
    });
    return carried;
  }

  /// Compute waits for what the starts but the last have issued, so that memory holds what belongs to two.
  void awaitStartsBefore(plan::RoutineOp routine) {
    const size_t number = size_t(llvm::find(starts_, routine) - starts_.begin());
    makeDueWhere([&](const UnderWay &other) { return other.start + startsUnderWay <= number; });
  }

  /// What nobody in a start has waited for later routines do. Its buffers live on: with one micro-batch a step that is
  /// so of copies to device memory alone. Other routines leave what they have carried out for later ones.
  void noteLeft() {
    const auto start = llvm::find(starts_, routine_);
    SmallVector<UnderWay> &carried = left_[routine_];
    for (UnderWay other : underWay_) {
      if (start == starts_.end() ? !isForLater(other.command)
                                 : !other.isCarried() && !isStart_ && !other.isOn(fetchQueue))
        continue;
      if (other.command->getParentOp() == routine_)
        other.start = size_t(start - starts_.begin());
      other.turn = noTurn;
      // This clock is no other routine's; what the host still has to do when compute ends here, it has there at most.
      other.end = isForLater(other.command) && other.isOn(hostQueue) ? std::max(0.0, other.end - clock_)
                                                                     : std::numeric_limits<double>::infinity();
      carried.push_back(other);
      for (Value operand : other.command.getBuffers())
        if (auto buffer = operand.getDefiningOp<plan::BufferOp>(); buffer.getScope() == plan::Scope::Call)
          buffer.setScope(plan::Scope::Step);
    }
  }

  /// `command` stays on the compute queue; it waits for what is due, and for what touches the same bytes.
  void orderCompute(plan::CommandOpInterface command) {
    makeDueWhere([&](const UnderWay &other) { return isTimed(other) && other.awaited(patience_) <= clock_; });
    clock_ += seconds(command);
    if (sharesBuffer(command))
      makeDueWhere([&](const UnderWay &other) { return other.meets(command); });
    for (const UnderWay &other : due_)
      command.addWait(other.done);
    due_.clear();
    lastCompute_ = command;
  }

  /// The next command on the compute queue waits.
  void makeDue(UnderWay other) {
    if (other.isCarried()) {
      const size_t place = places_.lookup(routine_);
      const auto known = awaited_.try_emplace(other.done, place).first;
      known->second = std::min(known->second, place);
    }
    due_.push_back(other);
    llvm::erase_if(underWay_, [&](const UnderWay &one) {
      const bool isDue = one.done == due_.back().done;
      if (isDue)
        countUses(one, -1);
      return isDue;
    });
  }

  /// The same for all that `isDue` names, in their order.
  void makeDueWhere(llvm::function_ref<bool(const UnderWay &)> isDue) {
    SmallVector<UnderWay> due;
    llvm::copy_if(underWay_, std::back_inserter(due), isDue);
    for (const UnderWay &other : due)
      makeDue(other);
  }

  void countUses(const UnderWay &one, int64_t change) {
    for (Value buffer : plan::CommandOpInterface(one.command).getBuffers())
      uses_[buffer] += change;
  }

  /// Whether something under way uses a buffer of a command: something else, where its own uses are counted.
  bool sharesBuffer(plan::CommandOpInterface command, bool isCounted = false) const {
    return llvm::any_of(command.getBuffers(), [&](Value buffer) {
      return uses_.lookup(buffer) > (isCounted ? llvm::count(command.getBuffers(), buffer) : 0);
    });
  }

  void awaitToken(plan::AwaitOp await) {
    Operation *awaited = await.getToken().getDefiningOp();
    makeDueWhere([&](const UnderWay &other) { return plan::CommandOpInterface(other.command) == awaited; });
    await.erase();
  }

  /// Puts `command` on another queue, behind the compute command before it and behind what is under way on a third
  /// queue and touches the same bytes, or uses what a message leaves from. It signals `done`, by default an event of
  /// its own.
  void beside(plan::CommandOpInterface command, StringRef queue, std::string done = "") {
    if (!lastCompute_)
      join(command->getIterator());
    auto [ready, isNew] = ready_.try_emplace(lastCompute_);
    if (isNew) {
      ready->second = makeEvent("ready");
      lastCompute_.addSignal(ready->second);
    }
    const ArrayRef<UnderWay> sharing = sharesBuffer(command) ? ArrayRef<UnderWay>(underWay_) : ArrayRef<UnderWay>();
    command.setQueueAttr(FlatSymbolRefAttr::get(role_.getContext(), queue));
    queue = command.getQueueAttr().getValue();
    command.addWait(ready->second);
    for (ArrayRef<UnderWay> others : {ArrayRef<UnderWay>(due_), sharing})
      for (const UnderWay &other : others)
        if (!other.isOn(queue) && (other.meets(command) || other.leavesWith(command)))
          command.addWait(other.done);
    if (done.empty())
      done = makeEvent("done");
    command.addSignal(done);
    underWay_.push_back({command, done, turn_, queue});
    countUses(underWay_.back(), 1);
  }

  void orderTransfer(plan::CopyOp copy) {
    auto command = cast<plan::CommandOpInterface>(copy.getOperation());
    const StringRef queue = queueOf(copy);
    if ((queue == evictQueue || queue == readQueue) && ranOnHost_ && takesTurns())
      beginTurn(copy);
    for (StringRef away : {evictQueue, writeQueue})
      if (!isStart_)
        awaitCopies(away, queue == away ? copiesUnderWay - 1 : copiesUnderWay);
    beside(command, queue);
    if (isForLater(copy))
      underWay_.back().turn = noTurn;
    const double bytes = double(plan::tensorBytes(command.getTensor(0)));
    noteEnd(command, queue, (touchesFile(copy) ? nvme_ : host_).seconds(bytes));
  }

  /// When a command that is issued now, and takes so long, should end.
  void noteEnd(plan::CommandOpInterface command, StringRef queue, double duration) {
    double begin = std::max(clock_, queueEnds_.lookup(queue));
    if (sharesBuffer(command, /*isCounted=*/true))
      for (const UnderWay &other : underWay_)
        if (other.command != command && other.meets(command))
          begin = std::max(begin, other.end);
    underWay_.back().issued = clock_;
    underWay_.back().end = queueEnds_[queue] = begin + duration;
  }

  /// Whether the clock, not a count, says when compute waits for a copy away or a kernel on the host. Updates have
  /// turns instead.
  bool isTimed(const UnderWay &other) const {
    if (isStart_ || other.isCarried())
      return false;
    if (takesTurns())
      return turn_ == 0 && !ranOnHost_ && knowsEnd(other);
    return knowsEnd(other) || (knowsLinks() && (other.isOn(hostQueue) || goesBack(other)));
  }
  /// A copy of what the host has updated: no command of the routine waits for it.
  static bool goesBack(const UnderWay &other) {
    return other.isOn(fetchQueue) &&
           plan::CommandOpInterface(other.command).getBuffers()[1].getDefiningOp<plan::BufferOp>().getScope() ==
               plan::Scope::Plan;
  }
  bool knowsEnd(const UnderWay &other) const {
    return (other.isOn(evictQueue) && host_.bytesPerSecond > 0) || (other.isOn(writeQueue) && nvme_.bytesPerSecond > 0);
  }

  bool knowsLinks() const { return host_.bytesPerSecond > 0 && (!usesFile_ || nvme_.bytesPerSecond > 0); }
  /// Lookups of a forward have none: they are few and small.
  bool takesTurns() const {
    return phase_ == plan::Phase::Update ||
           (!knowsLinks() && !isStart_ && phase_ != plan::Phase::Forward && phase_ != plan::Phase::Evaluate);
  }

  /// Whether it is a copy of this routine that reads a file for other routines alone, or a kernel on the host that no
  /// routine waits for. An event of a routine whose calls end before the last micro-batch is not counted up to that,
  /// for which the update waits.
  bool isForLater(Operation *command) const {
    if (const auto last = lastMicrobatches_.find(routine_);
        last != lastMicrobatches_.end() && last->second != lastMicrobatch_)
      return false;
    if (isa<plan::KernelOp>(command))
      return phase_ != plan::Phase::Update && command->getParentOp() == routine_ &&
             outlivesStep(cast<plan::CommandOpInterface>(command));
    auto copy = dyn_cast<plan::CopyOp>(command);
    return copy && copy->getParentOp() == routine_ && changesSpace(copy) && queueOf(copy) == readQueue &&
           llvm::all_of(copy.getBuffers()[1].getUsers(),
                        [&](Operation *user) { return user == copy || user->getParentOp() != routine_; });
  }

  /// Whether it makes what outlives the step of nothing else, as an update by the gradient of the step before does.
  static bool outlivesStep(plan::CommandOpInterface command) {
    for (auto [index, operand] : llvm::enumerate(command.getBuffers()))
      if (command.getTensor(unsigned(index)).getRank() > 0 &&
          operand.getDefiningOp<plan::BufferOp>().getScope() != plan::Scope::Plan)
        return false;
    return computesInHostMemory(command);
  }

  static StringRef queueOf(plan::CopyOp copy) {
    const plan::MemorySpace from = arenaOf(copy.getBuffers()[0]).getSpace(),
                            to = arenaOf(copy.getBuffers()[1]).getSpace();
    if (touchesFile(copy))
      return from == plan::MemorySpace::Nvme ? readQueue : writeQueue;
    return to == plan::MemorySpace::Device ? fetchQueue : evictQueue;
  }

  void orderHostKernel(plan::CommandOpInterface kernel) {
    const double duration = secondsOnHost(kernel);
    beside(kernel, hostQueue);
    noteEnd(kernel, hostQueue, duration);
    if (isForLater(kernel)) {
      underWay_.back().turn = noTurn;
      return;
    }
    ranOnHost_ = true;
  }

  //===-- turns of kernels on the host --------------------------------------------===//

  /// The copies for the next kernel on the host begin, once the kernel before the last is done and what it wrote is
  /// back: so the host's memory holds the operands of two, or of three.
  void beginTurn(plan::CopyOp copy) {
    const int64_t underWay = usesFile_ ? 3 : 2;
    awaitTurnsBefore(++turn_ + 1 - underWay);
    ranOnHost_ = false;
    if (!due_.empty())
      join(copy->getIterator());
  }

  void awaitTurnsBefore(int64_t turn) {
    makeDueWhere([&](const UnderWay &other) {
      return other.turn < turn && llvm::any_of(transferQueues, [&](StringRef queue) { return other.isOn(queue); });
    });
  }

  /// Compute waits for the oldest copies of a queue but for so many, unless the clock says when. Of kernels on the host
  /// the turns say when copies to a file are awaited.
  void awaitCopies(StringRef queue, int64_t left) {
    const auto isCopy = [&](const UnderWay &other) { return other.isOn(queue) && !other.isCarried(); };
    if (queue == writeQueue && takesTurns() && (turn_ > 0 || ranOnHost_))
      return;
    if (const auto first = llvm::find_if(underWay_, isCopy); first == underWay_.end() || isTimed(*first))
      return;
    for (int64_t count = llvm::count_if(underWay_, isCopy); count > left; --count)
      makeDue(*llvm::find_if(underWay_, isCopy));
  }

  static plan::ArenaOp arenaOf(Value operand) {
    auto buffer = operand.getDefiningOp<plan::BufferOp>();
    return SymbolTable::lookupNearestSymbolFrom<plan::ArenaOp>(buffer, buffer.getArenaAttr());
  }
  static bool computesInHostMemory(plan::CommandOpInterface command) {
    auto copy = dyn_cast<plan::CopyOp>(command.getOperation());
    return (isa<plan::KernelOp, plan::FillOp>(command.getOperation()) || (copy && !changesSpace(copy))) &&
           llvm::any_of(command.getBuffers(),
                        [](Value operand) { return arenaOf(operand).getSpace() == plan::MemorySpace::Host; });
  }
  static bool touchesFile(plan::CopyOp copy) {
    return llvm::any_of(copy.getBuffers(),
                        [](Value operand) { return arenaOf(operand).getSpace() == plan::MemorySpace::Nvme; });
  }
  static bool changesSpace(plan::CopyOp copy) { return arenaOf(copy.getBuffers()[0]) != arenaOf(copy.getBuffers()[1]); }

  void orderSend(plan::SendOp send) {
    const Departure &departure = inFlight_.departures().find(send)->second;
    auto command = cast<plan::CommandOpInterface>(send.getOperation());
    beside(command, send.getChannel(), departure.sent);
    if (departure.buffers.empty()) // one copy, which is compute's again at once
      makeDue(underWay_.back());
  }

  /// A feed or a receive. What no step reads needs no slot to be free.
  void orderArrival(plan::CommandOpInterface command) {
    const Arrival &arrival = inFlight_.arrivalOf(command);
    auto receive = dyn_cast<plan::ReceiveOp>(command.getOperation());
    command.setQueueAttr(
        FlatSymbolRefAttr::get(role_.getContext(), receive ? receive.getChannel() : StringRef("copy_in")));
    if (arrival.lastReader)
      command.addWait(arrival.freed, arrival.delay);
    if (receive)
      command.addSignal(arrival.ready);
  }

  /// A command of the compute queue that only waits and signals: it fills nothing.
  void join(Block::iterator before) {
    OpBuilder builder(routine_);
    auto nothing = plan::BufferOp::create(builder, routine_.getLoc(), "join", plan::MemorySpace::Device, 0,
                                          plan::Scope::Call, plan::Category::Workspace);
    builder.setInsertionPoint(&routine_.getBody().front(), before);
    auto fill = plan::FillOp::create(builder, routine_.getLoc(), nothing,
                                     RankedTensorType::get({0}, builder.getIntegerType(8)), "compute");
    orderCompute(cast<plan::CommandOpInterface>(fill.getOperation()));
  }

  /// The same collective without a token.
  static void dropToken(plan::CollectiveOp collective) {
    OpBuilder builder(collective);
    OperationState state(collective.getLoc(), collective->getName());
    state.addOperands(collective->getOperands());
    state.addAttributes(collective->getAttrs());
    builder.create(state);
    collective.erase();
  }

  //===-- between routines ------------------------------------------------------------===//

  void orderSlots(plan::RoutineOp routine) {
    Block &body = routine.getBody().front();
    for (const auto &[op, arrival] : inFlight_.arrivals()) {
      if (inFlight_.uses(routine, arrival.buffers))
        for (plan::CommandOpInterface user : firstUsers(routine, arrival))
          user.addWait(arrival.ready);
      if (arrival.lastReader == routine)
        computeCommand(routine, /*last=*/true).addSignal(arrival.freed);
    }
    for (const auto &[op, departure] : inFlight_.departures()) {
      if (op->getParentOp() == routine && !departure.buffers.empty() && departure.slots < inFlight_.microbatches())
        computeCommand(routine, /*last=*/false).addWait(departure.sent, departure.slots);
      else if (op->getParentOp() != routine && inFlight_.uses(routine, departure.buffers))
        computeCommand(routine, /*last=*/false).addWait(departure.sent);
    }
    if (auto feed =
            body.empty() ? plan::FeedOp() : dyn_cast<plan::FeedOp>(body.back())) // says that all inputs are there
      cast<plan::CommandOpInterface>(feed.getOperation()).addSignal(inFlight_.arrivalOf(feed).ready);
  }

  /// Up to the first one on the compute queue, which others of the routine follow.
  static SmallVector<plan::CommandOpInterface> firstUsers(plan::RoutineOp routine, const Arrival &arrival) {
    SmallVector<plan::CommandOpInterface> users;
    for (auto command : routine.getOps<plan::CommandOpInterface>())
      if (llvm::any_of(command.getBuffers(),
                       [&](Value operand) { return arrival.buffers.contains(operand.getDefiningOp()); })) {
        users.push_back(command);
        if (command.isOnQueue("compute"))
          break;
      }
    return users;
  }

  /// The first or last command of a routine on the compute queue; one that does nothing if there is none.
  plan::CommandOpInterface computeCommand(plan::RoutineOp routine, bool last) {
    const auto find = [&] {
      plan::CommandOpInterface found;
      for (auto command : routine.getOps<plan::CommandOpInterface>())
        if (command.isOnQueue("compute") && (last || !found))
          found = command;
      return found;
    };
    if (!find()) {
      routine_ = routine;
      join(routine.getBody().front().end());
    }
    return find();
  }

  plan::RoleOp role_;
  const double patience_;
  InFlight inFlight_;
  OpBuilder members_; // where queues and events go
  const LinkSpeed host_, nvme_;
  int64_t events_ = 0;
  // Of one routine.
  plan::RoutineOp routine_;
  plan::Phase phase_ = plan::Phase::Begin;
  plan::CommandOpInterface lastCompute_;
  SmallVector<UnderWay> underWay_, due_; // for those that are due the next command of compute waits
  llvm::DenseMap<Value, int64_t> uses_;  // of buffers by what is under way; looked up
  int64_t turn_ = 0;                     // of kernels on the host
  bool ranOnHost_ = false;               // in this turn
  bool usesFile_ = false;
  double clock_ = 0;                               // compute's, of the cost model
  llvm::StringMap<double> queueEnds_;              // of the last command of another queue
  llvm::DenseMap<Operation *, std::string> ready_; // what compute commands signal to other queues; looked up
  bool isStart_ = false;                           // of a step with several micro-batches
  // Of the role.
  llvm::DenseMap<Operation *, size_t> places_; // of the step's routines, in the order of their first calls; looked up
  llvm::MapVector<Operation *, int64_t> lastMicrobatches_; // by routine of the step, in the order of their first calls
  int64_t lastMicrobatch_ = 0;
  SmallVector<plan::RoutineOp> starts_;                      // in the order of their calls
  llvm::MapVector<Operation *, SmallVector<UnderWay>> left_; // by routine: what is under way behind it
  llvm::StringMap<size_t> awaited_; // by event of what is carried: the place of the first that waits for it; looked up
};

struct OrderQueues : ds::impl::OrderQueuesBase<OrderQueues> {
  using OrderQueuesBase::OrderQueuesBase;

  void runOnOperation() override {
    for (auto role : getOperation().getOps<plan::RoleOp>())
      orderQueues(role, patience);
  }
};

} // namespace

void ds::orderQueues(plan::RoleOp role, double patience) { RoleQueues(role, patience).run(); }
