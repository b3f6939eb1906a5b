//===- AdvanceUpdates.cpp - the host updates while the backward goes on ---===//
//
// 1. An update that the host will make, and that needs no gradient but its own, leaves the routine of the update: not
//    so where gradients are clipped, or a step may be left out, for then it waits for the norm of all. What it takes
//    beside its gradient is a few scalars, which the backward computes first.
// 2. It stands in the backward behind the last command that touches the same bytes: its gradient is complete, and the
//    parameter was read.
// 3. What comes to the host for an update comes while the one before waits for its gradient or is computed, and the one
//    before that goes back. So an update stands where the last but one should have ended.
// 4. What could not be back by the end of the backward stays in the update; only the last two may stand at its end.
//    Times are those of the cost model and of the machine's links; where these are unknown, nothing moves.
// 5. With `speculates`, it does not wait for the norm: it is made as if nothing were clipped, and again behind the step
//    where something is (SpeculativeUpdates.h).
// 6. Where all micro-batches go through a layer before the next one (StepStart.h), an update stands in the start behind
//    the last layer that touches the same bytes, and is made beside the layers that follow.
// 7. Delayed updates, of the step before, wait for no gradient (DelayedUpdates.h).
// Cf. optimizers that step in a backward hook (torch.Tensor.register_post_accumulate_grad_hook), and Lv et al., Full
// Parameter Fine-tuning for Large Language Models with Limited Resources, ACL 2024.
//
//===----------------------------------------------------------------------===//
#include "compiler/analysis/BufferUses.h"
#include "compiler/analysis/Cost.h"
#include "compiler/passes/offload/DelayedUpdates.h"
#include "compiler/passes/offload/HostSums.h"
#include "compiler/passes/offload/OperandCopies.h"
#include "compiler/passes/offload/Passes.h"
#include "compiler/passes/offload/RoutineTimes.h"
#include "compiler/passes/offload/SpeculativeUpdates.h"
#include "compiler/passes/offload/StepStart.h"
#include "dialects/Plan/Plan.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/SmallVectorExtras.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

namespace ds {
#define GEN_PASS_DEF_ADVANCEUPDATES
#include "compiler/passes/offload/Passes.h.inc"
} // namespace ds

using namespace mlir;
using namespace ds;

namespace {

using Commands = llvm::SetVector<Operation *>;

/// When each queue has done what was given to it, in seconds from the start of the backward.
struct QueueEnds {
  double fetch = 0, read = 0, write = 0, host = 0;
};

/// Moves the updates of one role.
class UpdateAdvance {
public:
  UpdateAdvance(plan::RoleOp role, plan::MemorySpace space, int64_t leastBytes, bool speculates)
      : role_(role), space_(space), leastBytes_(leastBytes), speculates_(speculates),
        link_(linkSpeed(role, "device-host")), nvme_(linkSpeed(role, "host-nvme")) {}

  void run() {
    LayerGroups groups(role_);
    // Else an update needs times: what comes from a file is awaited.
    if (space_ == plan::MemorySpace::Host || !groups.empty())
      moveDelayedUpdates(role_, [&](plan::CommandOpInterface command) { return isOnHost(command); });
    if (!groups.empty())
      return moveBehind(groups);
    if (link_.bytesPerSecond == 0 || (space_ == plan::MemorySpace::Nvme && nvme_.bytesPerSecond == 0) ||
        !findRoutines())
      return;
    times_.emplace(backward_);
    std::vector<Update> updates = findUpdates();
    llvm::stable_sort(updates, [](const Update &a, const Update &b) { return a.behind < b.behind; });
    letGradientsLeave(updates);
    for (size_t i = 0; i < updates.size(); ++i)
      if (const std::optional<size_t> place = placeOf(updates[i], updates.size() - i))
        move(updates[i], *place);
      else if (updates[i].isGuess)
        speculation_->takeBack(updates[i].command);
  }

private:
  void moveBehind(LayerGroups &groups) {
    findRoutines();
    if (!update_)
      return;
    SmallVector<std::pair<size_t, Update>> updates; // and the group that it stands behind
    for (auto command : update_.getOps<plan::CommandOpInterface>()) {
      Update update{command};
      if (!mayAdvance(update))
        continue;
      size_t last = 0;
      for (size_t group = 0; group < groups.routines().size(); ++group)
        if (plan::RoutineOp routine = groups.routines()[group];
            llvm::any_of(routine.getOps<plan::CommandOpInterface>(),
                         [&](plan::CommandOpInterface other) { return conflict(other, command); }))
          last = group;
      updates.push_back({last, std::move(update)});
    }
    llvm::stable_sort(updates, llvm::less_first());
    for (auto &[group, update] : updates) {
      plan::RoutineOp start = groups.startOf(group + 1);
      moveNeeds(update, start, start.getBody().front().end());
      moveTo(update.command, start, start.getBody().front().end());
      if (update.isGuess)
        speculation_->keep(update.command, update.command, update.command);
    }
  }

  /// Updates whose operands lie in host memory at once: one comes, one is computed, one goes back.
  static constexpr size_t underWay = 3;

  struct Update {
    plan::CommandOpInterface command;
    Commands needs = {};             // in their order
    bool isGuess = false;            // made as if nothing were clipped
    size_t behind = 0;               // so many ops of the backward
    double parameter = 0, state = 0; // bytes that come to the host for it from the device, and from a file
    double there = 0;                // when its gradient is
  };

  /// The update of a step, and the backward that is called just before it, both once.
  bool findRoutines() {
    for (auto program : role_.getOps<plan::ProgramOp>()) {
      if (program.getName() != "step")
        continue;
      for (auto call : program.getOps<plan::CallOp>()) {
        auto routine = SymbolTable::lookupNearestSymbolFrom<plan::RoutineOp>(program, call.getRoutineAttr());
        step_.insert(routine);
        if (routine.getPhase() != plan::Phase::Update)
          backward_ = routine;
        else
          update_ = routine;
      }
      return update_ && backward_ && callsIn(program, update_.getSymNameAttr()) == 1 &&
             callsIn(program, backward_.getSymNameAttr()) == 1 &&
             (backward_.getPhase() == plan::Phase::Backward || backward_.getPhase() == plan::Phase::Weight);
    }
    return false;
  }

  //===-- which updates -----------------------------------------------------------===//

  std::vector<Update> findUpdates() {
    std::vector<Update> updates;
    for (auto command : update_.getOps<plan::CommandOpInterface>()) {
      Update update{command};
      if (!mayAdvance(update))
        continue;
      for (Operation *op : times_->ops())
        if (auto other = dyn_cast<plan::CommandOpInterface>(op); other && conflict(other, command))
          update.behind = std::max(update.behind, times_->indexOf(awaitOf(other)) + 1);
      using enum plan::MemorySpace;
      update.parameter = bytesOf(update, plan::Category::Weights, Device);
      update.state = bytesOf(update, plan::Category::Weights, Nvme) +
                     (space_ == Nvme ? bytesOf(update, plan::Category::Optimizer, Device) : 0);
      updates.push_back(std::move(update));
    }
    return updates;
  }

  /// Whether the host makes it, and nothing that it needs is computed by the update from other gradients.
  bool mayAdvance(Update &update) {
    if (!isOnHost(update.command))
      return false;
    if (collectNeeds(update.command, update.needs))
      return true;
    if (!speculates_)
      return false;
    if (!speculation_)
      speculation_.emplace(role_, update_);
    if (!speculation_->guess(update.command))
      return false;
    update.needs.clear();
    update.isGuess = collectNeeds(update.command, update.needs);
    if (!update.isGuess)
      speculation_->takeBack(update.command);
    return update.isGuess;
  }

  bool isOnHost(plan::CommandOpInterface command) const {
    return isUpdate(command) && llvm::any_of(command.getBuffers(), [&](Value operand) {
             return isStateAway(operand.getDefiningOp<plan::BufferOp>(), leastBytes_);
           });
  }

  /// They leave one after another, and so do parameters; those that the host makes (HostSums.h) leave as what it takes,
  /// once for all pieces of a parameter.
  void letGradientsLeave(std::vector<Update> &updates) {
    struct Leaving {
      size_t behind;
      double bytes;
      ArrayRef<Update *> updates; // that take it
    };
    std::vector<Leaving> leaving;
    llvm::MapVector<Value, SmallVector<Update *>> takers; // by gradient
    for (Update &update : updates)
      takers[gradientOf(update)].push_back(&update);
    for (const auto &[gradient, pieces] : takers) {
      const HostSums sums = findHostSums(backward_, [&, gradient = gradient](Value buffer) {
        return buffer == gradient && llvm::none_of(buffer.getUsers(), llvm::IsaPred<plan::CollectiveOp>);
      });
      for (const LeavingSummand &one : leavingFor(sums))
        leaving.push_back({times_->indexOf(one.behind) + 1, double(one.bytes), pieces});
      for (Update *const &piece : pieces) {
        const double own =
            sums.kernels.empty() ? bytesOf(*piece, plan::Category::Gradients, plan::MemorySpace::Device) : 0;
        leaving.push_back({piece->behind, own + piece->parameter, ArrayRef(piece)});
      }
    }
    llvm::stable_sort(leaving, [](const Leaving &a, const Leaving &b) { return a.behind < b.behind; });
    double away = 0;
    for (const Leaving &one : leaving) {
      away = std::max(away, times_->begin(one.behind)) + (one.bytes > 0 ? link_.seconds(one.bytes) : 0);
      for (Update *update : one.updates)
        update->there = std::max(update->there, away);
    }
  }

  /// Null where it has none.
  static Value gradientOf(const Update &update) {
    plan::CommandOpInterface command = update.command;
    for (Value buffer : command.getBuffers())
      if (buffer.getDefiningOp<plan::BufferOp>().getCategory() == plan::Category::Gradients)
        return buffer;
    return {};
  }

  /// The kernels of the update's routine that a command needs, if the step can begin with them.
  bool collectNeeds(plan::CommandOpInterface command, Commands &needs) {
    for (plan::CommandOpInterface other : before(command)) {
      if (needs.contains(other) || !conflict(other, command))
        continue;
      const Commands *theirs = needsAtStart(other);
      if (!theirs)
        return false;
      needs.insert_range(*theirs);
      needs.insert(other);
    }
    return true;
  }

  /// What a kernel needs that the step can begin with; null for other commands.
  const Commands *needsAtStart(plan::CommandOpInterface command) {
    const auto known = needsAtStart_.find(command);
    if (known != needsAtStart_.end())
      return known->second.get();
    auto needs = std::make_unique<Commands>();
    if (!isa<plan::KernelOp>(command) || isUpdate(command) || !isOfStart(command) || !collectNeeds(command, *needs))
      needs = nullptr;
    return (needsAtStart_[command] = std::move(needs)).get();
  }

  /// The commands of the update's routine before one of them that may touch the same bytes, one of the two writing; in
  /// their order. Scalars have as many readers as there are updates, so that these are looked at where it writes alone.
  SmallVector<plan::CommandOpInterface> before(plan::CommandOpInterface command) {
    if (places_.empty())
      for (auto other : update_.getOps<plan::CommandOpInterface>()) {
        places_.try_emplace(other, places_.size());
        for (auto [index, buffer] : llvm::enumerate(other.getBuffers()))
          if (other.writes(unsigned(index)))
            writers_[buffer].push_back(other);
      }
    llvm::SmallSetVector<Operation *, 8> found;
    const auto add = [&](Operation *other) {
      const auto place = places_.find(other);
      if (place != places_.end() && place->second < places_.lookup(command))
        found.insert(other);
    };
    for (auto [index, buffer] : llvm::enumerate(command.getBuffers()))
      if (command.writes(unsigned(index)))
        llvm::for_each(buffer.getUsers(), add);
      else if (const auto writers = writers_.find(buffer); writers != writers_.end())
        llvm::for_each(writers->second, add);
    auto inOrder = found.takeVector();
    llvm::sort(inOrder, [&](Operation *a, Operation *b) { return places_.lookup(a) < places_.lookup(b); });
    return llvm::map_to_vector(inOrder, [](Operation *op) { return cast<plan::CommandOpInterface>(op); });
  }

  /// Whether no other routine of the step makes what it reads.
  bool isOfStart(plan::CommandOpInterface command) const {
    return llvm::none_of(command.getBuffers(), [&](Value buffer) {
      return llvm::any_of(buffer.getUsers(), [&](Operation *user) {
        if (user->getParentOp() == update_ || !step_.contains(user->getParentOp()))
          return false;
        auto other = dyn_cast<plan::CommandOpInterface>(user);
        return other && conflict(other, command);
      });
    });
  }

  //===-- where they stand --------------------------------------------------------===//

  /// The op of the backward in front of which an update stands, or its end; nothing where it stays. `left`: updates,
  /// this one and those behind it.
  std::optional<size_t> placeOf(const Update &update, size_t left) {
    const bool comes = update.parameter + update.state > 0;
    double start = times_->begin(update.behind);
    if (comes && ends_.size() + 1 >= underWay)
      start = std::max(start, ends_[ends_.size() + 1 - underWay]);
    size_t place = update.behind;
    while (place < times_->ops().size() && times_->begin(place) < start)
      ++place;
    QueueEnds next = queues_;
    const auto take = [&](double &queue, double from, const LinkSpeed &link, double bytes) {
      if (bytes > 0)
        queue = std::max(queue, from) + link.seconds(bytes);
    };
    take(next.read, times_->begin(before_), nvme_, update.state);
    next.host = std::max({next.host, next.read, update.there}) + secondsOnHost(update.command);
    take(next.write, next.host, nvme_, update.state);
    take(next.fetch, next.host, link_, update.parameter);
    const double end = std::max({next.host, update.state > 0 ? next.write : 0, update.parameter > 0 ? next.fetch : 0});
    if (end > times_->end() && (left >= underWay || hasStayed_)) {
      hasStayed_ = true;
      return std::nullopt;
    }
    queues_ = next;
    before_ = place;
    if (comes)
      ends_.push_back(end);
    return place;
  }

  /// Of an update's operands of a category that lie in a space so far.
  static double bytesOf(const Update &update, plan::Category category, plan::MemorySpace space) {
    int64_t bytes = 0;
    llvm::SmallDenseSet<Value> known;
    plan::CommandOpInterface command = update.command;
    for (auto [index, buffer] : llvm::enumerate(command.getBuffers()))
      if (buffer.getDefiningOp<plan::BufferOp>().getCategory() == category && spaceOf(buffer) == space &&
          command.getTensor(unsigned(index)).getRank() > 0 && known.insert(buffer).second)
        bytes += plan::tensorBytes(command.getTensor(unsigned(index)));
    return double(bytes);
  }

  //===-- the move ----------------------------------------------------------------===//

  void move(const Update &update, size_t place) {
    Operation *first = times_->ops().front();
    moveNeeds(update, backward_, first->getIterator());
    moveTo(update.command, backward_,
           place < times_->ops().size() ? times_->ops()[place]->getIterator() : backward_.getBody().front().end());
    // Its parameter comes to the host while the update before waits for its gradient.
    if (update.isGuess)
      speculation_->keep(update.command, moved_ ? moved_ : first, first);
    moved_ = update.command;
  }

  void moveNeeds(const Update &update, plan::RoutineOp routine, Block::iterator before) {
    for (Operation *need : update.needs)
      if (need->getParentOp() == update_)
        moveTo(need, routine, before);
  }

  /// With the buffers that it names, which outlive the call if the update names them, too.
  static void moveTo(Operation *op, plan::RoutineOp routine, Block::iterator before) {
    op->moveBefore(&routine.getBody().front(), before);
    for (Value operand : op->getOperands()) {
      auto buffer = operand.getDefiningOp<plan::BufferOp>();
      if (routine->isBeforeInBlock(buffer))
        buffer->moveBefore(routine);
      if (buffer.getScope() == plan::Scope::Call)
        buffer.setScope(plan::Scope::Step);
    }
  }

  plan::RoleOp role_;
  const plan::MemorySpace space_;
  const int64_t leastBytes_;
  const bool speculates_;
  const LinkSpeed link_, nvme_;
  plan::RoutineOp backward_, update_;
  std::optional<SpeculativeUpdates> speculation_; // once there is an update that waits for the norm
  // Of the update's routine, before anything of it moves; looked up.
  llvm::DenseMap<Operation *, size_t> places_;                          // of its commands
  llvm::DenseMap<Value, SmallVector<Operation *, 1>> writers_;          // of its commands, by buffer
  llvm::DenseMap<Operation *, std::unique_ptr<Commands>> needsAtStart_; // null: not at the start
  Operation *moved_ = nullptr;                                          // the last update so far
  llvm::DenseSet<Operation *> step_;                                    // routines; looked up
  std::optional<RoutineTimes> times_;                                   // of the backward
  QueueEnds queues_;
  size_t before_ = 0; // where the update before stands
  bool hasStayed_ = false;
  std::vector<double> ends_; // of updates whose operands come to the host
};

struct AdvanceUpdates : ds::impl::AdvanceUpdatesBase<AdvanceUpdates> {
  using AdvanceUpdatesBase::AdvanceUpdatesBase;

  void runOnOperation() override {
    const FailureOr<plan::MemorySpace> where = spaceAway(getOperation(), space, leastBytes);
    if (failed(where))
      return signalPassFailure();
    for (auto role : getOperation().getOps<plan::RoleOp>())
      UpdateAdvance(role, *where, leastBytes, speculates).run();
  }
};

} // namespace
