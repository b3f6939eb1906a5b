//===- OffloadGradients.cpp - gradients leave as soon as they are computed ---===//
//
// 1. A gradient whose update the host will make lies in host memory or on NVMe: the kernels of its update are left to
//    ds-run-on-host, which runs them where it lies.
// 2. What else names it uses a buffer in device memory: a copy takes back what it writes, another brings what it reads
//    of micro-batches before. Commands of one routine that touch the same bytes share that buffer: contributions to a
//    bucket and the reduction that follows them. A reduce_scatter adds rank by rank onto the owner's slice, so the
//    slice comes, and keeps its order of sums.
// 3. An addition that is alone is left to ds-run-on-host, too: what is added leaves, and the host adds it.
// 4. What one call of one routine makes needs neither: its sum begins with zeros in device memory, and its squares for
//    the norm are taken there, before it leaves.
// 5. What cannot be away by the end of that routine leaves while the host makes the other updates.
// 6. With host-sums, what is made of few rows of a table leaves as these (HostSums.h).
// 7. What one layer makes, for all micro-batches before the next layer, leaves once for all of them (LayerSums.h).
// Ren et al., ZeRO-Offload, USENIX ATC 2021, section 4.1: gradients leave while the backward computes the next.
//
//===----------------------------------------------------------------------===//
#include "compiler/analysis/Cost.h"
#include "compiler/passes/offload/GradientStays.h"
#include "compiler/passes/offload/HostSums.h"
#include "compiler/passes/offload/LayerSums.h"
#include "compiler/passes/offload/OperandCopies.h"
#include "compiler/passes/offload/Passes.h"
#include "compiler/passes/offload/RoutineTimes.h"
#include "dialects/Plan/Plan.h"

#include "mlir/IR/Builders.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

#include <algorithm>

namespace ds {
#define GEN_PASS_DEF_OFFLOADGRADIENTS
#include "compiler/passes/offload/Passes.h.inc"
} // namespace ds

using namespace mlir;
using namespace ds;

namespace {

plan::Phase phaseOf(Operation *command) { return cast<plan::RoutineOp>(command->getParentOp()).getPhase(); }

/// Whether a sum begins with it.
bool zeroes(Operation *command) { return isa<plan::FillOp>(command) && phaseOf(command) == plan::Phase::Begin; }

/// Moves the gradients of one role.
class GradientMove {
public:
  GradientMove(plan::RoleOp role, plan::MemorySpace space, int64_t leastBytes, bool hostSums)
      : role_(role), programs_(role.getOps<plan::ProgramOp>()), members_(role.getContext()), space_(space),
        leastBytes_(leastBytes), hostSums_(hostSums), host_(linkSpeed(role, "device-host")) {}

  void run() {
    moved_ = moveBuffers(role_, space_,
                         [&](plan::BufferOp buffer) { return isOffloaded(buffer) && !isTakenAtOnce(buffer); });
    if (space_ != plan::MemorySpace::Host)
      moved_.insert_range(moveBuffers(role_, plan::MemorySpace::Host, [&](plan::BufferOp buffer) {
        return isOffloaded(buffer) && isTakenAtOnce(buffer);
      }));
    leaveByLayer(role_, moved_);
    for (auto routine : role_.getOps<plan::RoutineOp>())
      if (hostSums_)
        leaveSums(routine);
    llvm::MapVector<Operation *, SmallVector<GradientStay>> stays; // by routine
    for (auto routine : role_.getOps<plan::RoutineOp>())
      stays[routine] = staysIn(routine);
    for (auto &[routine, some] : stays)
      for (GradientStay &stay : some)
        staysOf_[stay.away.getDefiningOp()].push_back(&stay);
    for (Operation *buffer : moved_)
      if (isMadeOnce(buffer))
        elideZeros(cast<plan::BufferOp>(buffer));
    for (auto [place, op] : llvm::enumerate(role_.getBody().front()))
      places_[&op] = place;
    for (auto &[routine, some] : stays) {
      chooseLate(cast<plan::RoutineOp>(routine), some);
      moveZeros(cast<plan::RoutineOp>(routine));
      moveStays(cast<plan::RoutineOp>(routine), some);
    }
  }

private:
  /// Of which the host will make updates, of this step or the next one.
  bool isOffloaded(plan::BufferOp buffer) const {
    if (buffer.getScope() != plan::Scope::Step || buffer.getCategory() != plan::Category::Gradients ||
        int64_t(buffer.getBytes()) < leastBytes_ ||
        !llvm::all_of(buffer->getUsers(), llvm::IsaPred<plan::KernelOp, plan::CollectiveOp, plan::FillOp>))
      return false;
    return llvm::any_of(buffer->getUsers(),
                        [&](Operation *user) { return (isUpdate(user) || isPendingCopy(user)) && isOnHost(user); });
  }

  /// Whether its update follows in the backward (ds-advance-updates): then it needs no place in a file.
  bool isTakenAtOnce(plan::BufferOp buffer) const {
    return space_ != plan::MemorySpace::Host && llvm::any_of(buffer->getUsers(), [&](Operation *user) {
             return isUpdate(user) && phaseOf(user) != plan::Phase::Update;
           });
  }

  bool isOnHost(Operation *kernel) const {
    return llvm::any_of(kernel->getOperands(), [&](Value operand) {
      return isStateAway(operand.getDefiningOp<plan::BufferOp>(), leastBytes_);
    });
  }

  /// Whether it runs where its operands lie: what updates take, but for an update that stays on the device.
  bool isLeft(Operation *command) const {
    if (isUpdate(command))
      return isOnHost(command);
    return (isa<plan::KernelOp>(command) && phaseOf(command) == plan::Phase::Update) || zeroes(command) ||
           madeThere_.contains(command) || isa<plan::CopyOp>(command); // of LayerSums.h
  }

  /// Whether it takes the sum before the update, to sum it over the ranks, for example.
  bool takesEarly(Operation *user, Value sum) const {
    auto command = cast<plan::CommandOpInterface>(user);
    bool reads = false, writes = false;
    for (auto [index, buffer] : llvm::enumerate(command.getBuffers())) {
      reads |= buffer == sum && command.reads(index);
      writes |= buffer == sum && command.writes(index);
    }
    return isa<plan::CollectiveOp>(user) || (!isLeft(user) && reads && !writes);
  }

  /// Sums of few rows are left to the host, where they lie.
  void leaveSums(plan::RoutineOp routine) {
    const HostSums sums = findHostSums(routine, [&](Value buffer) {
      return moved_.contains(buffer.getDefiningOp()) &&
             llvm::none_of(buffer.getUsers(), [&](Operation *user) { return takesEarly(user, buffer); });
    });
    madeThere_.insert_range(sums.kernels);
    for (Operation *buffer : sums.buffers)
      cast<plan::BufferOp>(buffer).setArena(stringifyMemorySpace(plan::MemorySpace::Host));
    sums_[routine] = sums;
  }

  //===-- which uses belong together ----------------------------------------------===//

  SmallVector<GradientStay> staysIn(plan::RoutineOp routine) {
    SmallVector<GradientStay> stays;
    for (auto command : routine.getOps<plan::CommandOpInterface>())
      for (auto [index, buffer] : llvm::enumerate(command.getBuffers()))
        if (moved_.contains(buffer.getDefiningOp()) && !isLeft(command))
          addUse(stays, buffer, {command, unsigned(index)});
    llvm::stable_sort(stays, [](const GradientStay &a, const GradientStay &b) {
      return a.first() != b.first() && a.first()->isBeforeInBlock(b.first());
    });
    return stays;
  }

  //===-- where sums begin --------------------------------------------------------===//

  /// Whether one call of one routine before the update makes all of a gradient, and nothing that is left where that
  /// lies.
  bool isMadeOnce(Operation *buffer) {
    plan::RoutineOp maker;
    int64_t bytes = 0;
    for (const GradientStay *stay : staysOf_[buffer]) {
      auto routine = cast<plan::RoutineOp>(stay->first()->getParentOp());
      if (maker && maker != routine)
        return false;
      maker = routine;
      bytes += stay->range.end - stay->range.begin;
    }
    const bool isMadeThere = llvm::any_of(buffer->getUses(), [&](OpOperand &use) {
      auto command = cast<plan::CommandOpInterface>(use.getOwner());
      return isLeft(command) && !zeroes(command) && command.writes(use.getOperandNumber());
    });
    const bool once = maker && maker.getPhase() != plan::Phase::Update && !isMadeThere && isCalledOnce(maker) &&
                      bytes == int64_t(cast<plan::BufferOp>(buffer).getBytes());
    if (once)
      madeOnce_.insert(buffer);
    return once;
  }

  /// What is made once needs no zeros elsewhere.
  void elideZeros(plan::BufferOp buffer) {
    const auto fill = llvm::find_if(buffer->getUsers(), zeroes);
    if (fill == buffer->getUsers().end())
      return;
    (*fill)->erase();
    for (GradientStay *stay : staysOf_[buffer])
      stay->beginsWithZeros = true;
  }

  bool isCalledOnce(plan::RoutineOp routine) const {
    return llvm::all_of(programs_, [&](plan::ProgramOp program) {
      return llvm::count_if(program.getOps<plan::CallOp>(),
                            [&](plan::CallOp call) { return call.getRoutine() == routine.getSymName(); }) <= 1;
    });
  }

  /// The host zeroes what lies in its memory; one buffer of zeros there is written to all places in a file.
  void moveZeros(plan::RoutineOp routine) {
    if (space_ != plan::MemorySpace::Nvme)
      return;
    SmallVector<plan::FillOp> fills;
    for (auto fill : routine.getOps<plan::FillOp>())
      if (zeroes(fill) && moved_.contains(fill.getBuffers()[0].getDefiningOp()) &&
          spaceOf(fill.getBuffers()[0]) == space_)
        fills.push_back(fill);
    if (fills.empty())
      return;
    const auto bytesOf = [](plan::FillOp fill) {
      return plan::tensorBytes(cast<plan::CommandOpInterface>(fill.getOperation()).getTensor(0));
    };
    plan::FillOp largest = *llvm::max_element(fills, [&](auto a, auto b) { return bytesOf(a) < bytesOf(b); });
    members_.setInsertionPoint(routine);
    auto command = cast<plan::CommandOpInterface>(largest.getOperation());
    const Value zeros = makeBuffer(members_, command, 0, plan::MemorySpace::Host);
    OpBuilder builder(fills.front());
    plan::FillOp::create(builder, largest.getLoc(), zeros, command.getTensor(0), command.getQueueAttr().getValue());
    for (plan::FillOp fill : fills) {
      auto one = cast<plan::CommandOpInterface>(fill.getOperation());
      builder.setInsertionPoint(fill);
      copyTensor(builder, one, one.getTensor(0), {zeros}, placeOf(one, 0));
      fill.erase();
    }
  }

  //===-- when what is made once leaves -------------------------------------------===//

  /// Of what leaves one after another over a link whose speed is known: what would not be away when the routine ends.
  void chooseLate(plan::RoutineOp routine, MutableArrayRef<GradientStay> stays) {
    if (host_.bytesPerSecond == 0)
      return;
    const RoutineTimes times(routine);
    double away = 0;
    struct Leaving {
      Operation *behind;
      int64_t bytes;
      GradientStay *stay; // null: it has to be away
    };
    SmallVector<Leaving> leaving;
    for (GradientStay &stay : stays)
      if (madeOnce_.contains(stay.away.getDefiningOp()))
        leaving.push_back({stay.uses.back().command, stay.range.end - stay.range.begin,
                           updateThatReads(stay.away) ? &stay : nullptr});
    for (const LeavingSummand &one : leavingFor(sums_[routine]))
      leaving.push_back({one.behind, one.bytes, nullptr});
    llvm::stable_sort(
        leaving, [&](const Leaving &a, const Leaving &b) { return times.indexOf(a.behind) < times.indexOf(b.behind); });
    for (const Leaving &one : leaving) {
      away = std::max(away, times.begin(times.indexOf(one.behind) + 1)) + host_.seconds(double(one.bytes));
      if (one.stay)
        one.stay->isLate = away > times.end();
    }
  }

  /// The only update of a parameter that no collective has to do with, by this gradient, in the update; null where
  /// there is none.
  static Operation *updateThatReads(Value away) {
    Operation *update = nullptr;
    for (Operation *user : away.getUsers())
      if (isUpdate(user)) {
        if (update)
          return nullptr;
        update = user;
      }
    const bool alone = update && phaseOf(update) == plan::Phase::Update &&
                       llvm::none_of(*update->getBlock(), llvm::IsaPred<plan::CollectiveOp>);
    return alone ? update : nullptr;
  }

  /// Its update is the last of the host's, and it leaves behind the first of them, which takes the scalars along: in
  /// front of what this returns.
  Operation *placeOfLate(const GradientStay &stay) const {
    Operation *update = updateThatReads(stay.away), *first = nullptr, *last = nullptr;
    for (Operation &op : *update->getBlock())
      if (isUpdate(&op) && isOnHost(&op)) {
        first = first ? first : &op;
        last = &op;
      }
    if (update != last)
      update->moveAfter(last);
    return first == update ? update : first->getNextNode();
  }

  /// Squares for the norm are taken of a gradient near the device, if all that they are of is there.
  void takeSquares(const GradientStay &stay, const GradientUse &use, const TensorPlace &near) {
    const TensorPlace own = use.place();
    const int64_t bytes = plan::tensorBytes(use.type());
    for (Operation *user : llvm::make_early_inc_range(stay.away.getUsers())) {
      auto kernel = dyn_cast<plan::KernelOp>(user);
      if (!kernel || kernel.getKernel() != "block_sum_squares" || !isLeft(user))
        continue;
      auto command = cast<plan::CommandOpInterface>(user);
      const TensorPlace place = placeOf(command, 0);
      const int64_t behind = place.offset - own.offset;
      if (place.stride != own.stride || behind < 0 || behind + plan::tensorBytes(command.getTensor(0)) > bytes)
        continue;
      user->moveAfter(awaitOf(use.command));
      setOperand(command, 0, {near.buffer, near.offset + behind, near.stride, near.ranks});
      command.getBuffers()[1].getDefiningOp<plan::BufferOp>().setScope(plan::Scope::Step);
      for (Value operand : command.getBuffers())
        moveBefore(user->getParentOp(), operand.getDefiningOp());
    }
  }

  /// Moves a buffer that stands behind a routine in front of it. Buffers made here stand in front of theirs.
  void moveBefore(Operation *routine, Operation *buffer) {
    const auto place = places_.find(buffer);
    const size_t before = places_.lookup(routine);
    if (place == places_.end() || place->second <= before)
      return;
    buffer->moveBefore(routine);
    place->second = before;
  }

  //===-- buffers in device memory ------------------------------------------------===//

  void moveStays(plan::RoutineOp routine, ArrayRef<GradientStay> stays) {
    members_.setInsertionPoint(routine);
    Operation *before = nullptr; // the first command of the stay before
    for (const GradientStay &stay : stays) {
      if (stay.isAddition() && !stay.beginsWithZeros)
        continue;
      stay.uses.size() == 1 ? moveTensor(stay, before) : moveRange(stay, before);
      before = stay.first();
    }
  }

  /// A buffer for the tensor alone.
  void moveTensor(const GradientStay &stay, Operation *ahead) {
    const GradientUse &use = stay.uses[0];
    const TensorPlace near{makeNear(stay, plan::tensorBytes(use.type()))};
    if (use.reads())
      bring(stay, use, use.type(), use.place(), near, ahead);
    if (use.writes())
      takeBack(stay, use, near);
    setOperand(use.command, use.index, near);
  }

  /// A buffer for all bytes from the first to the last.
  void moveRange(const GradientStay &stay, Operation *ahead) {
    const Value near = makeNear(stay, stay.range.end - stay.range.begin);
    const auto nearOf = [&](TensorPlace place) {
      return TensorPlace{near, place.offset - stay.range.begin, place.stride, place.ranks};
    };
    SmallVector<ByteRange> there; // what lies in `near`
    for (const auto &[number, use] : llvm::enumerate(stay.uses)) {
      if (use.reads())
        for (const ByteRange &gap : gapsIn(use.range(), there)) {
          const TensorPlace place{stay.away, gap.begin};
          bring(stay, use, tensorOf(use, gap), place, nearOf(place), number == 0 ? ahead : nullptr);
        }
      if (use.reads() || use.place().stride == 0)
        there.push_back(use.range());
      if (use.writes() && llvm::none_of(ArrayRef<GradientUse>(stay.uses).drop_front(number + 1),
                                        [&, range = use.range()](const GradientUse &later) {
                                          return later.writes() && later.range().overlaps(range);
                                        }))
        takeBack(stay, use, nearOf(use.place()));
    }
    for (const GradientUse &use : stay.uses)
      setOperand(use.command, use.index, nearOf(use.place()));
  }

  static RankedTensorType tensorOf(const GradientUse &use, const ByteRange &bytes) {
    const int64_t element = use.type().getElementTypeBitWidth() / 8;
    return use.type().clone({(bytes.end - bytes.begin) / element});
  }

  Value makeNear(const GradientStay &stay, int64_t bytes) {
    return makeOf(stay.away, bytes, plan::MemorySpace::Device, stay.isLate ? plan::Scope::Step : plan::Scope::Call);
  }
  Value makeOf(Value away, int64_t bytes, plan::MemorySpace space, plan::Scope scope = plan::Scope::Call) {
    auto buffer = away.getDefiningOp<plan::BufferOp>();
    return plan::BufferOp::create(members_, buffer.getLoc(), buffer.getName(), space, bytes, scope,
                                  plan::Category::Communication);
  }

  /// Zeros or, by way of host memory, what lies elsewhere; that in front of `ahead`, which stands before the command.
  void bring(const GradientStay &stay, const GradientUse &use, RankedTensorType type, const TensorPlace &away,
             const TensorPlace &near, Operation *ahead) {
    Operation *command = use.command;
    OpBuilder builder(ahead && !stay.beginsWithZeros ? ahead : command);
    if (stay.beginsWithZeros) {
      auto fill = plan::FillOp::create(builder, command->getLoc(), near.buffer, type,
                                       plan::CommandOpInterface(use.command).getQueueAttr().getValue());
      return fill.setByteOffsets({near.offset});
    }
    if (spaceOf(away.buffer) != plan::MemorySpace::Nvme)
      return copyTensor(builder, use.command, type, away, near);
    const TensorPlace there{makeOf(away.buffer, plan::tensorBytes(type), plan::MemorySpace::Host)};
    copyTensor(builder, use.command, type, away, there);
    copyTensor(builder, use.command, type, there, near);
  }

  void takeBack(const GradientStay &stay, const GradientUse &use, const TensorPlace &near) {
    if (madeOnce_.contains(stay.away.getDefiningOp()))
      takeSquares(stay, use, near);
    OpBuilder builder(role_.getContext());
    stay.isLate ? builder.setInsertionPoint(placeOfLate(stay)) : builder.setInsertionPointAfter(awaitOf(use.command));
    if (spaceOf(stay.away) != plan::MemorySpace::Nvme)
      return copyTensor(builder, use.command, use.type(), near, use.place());
    const TensorPlace there{makeOf(use.place().buffer, plan::tensorBytes(use.type()), plan::MemorySpace::Host)};
    copyTensor(builder, use.command, use.type(), near, there);
    copyTensor(builder, use.command, use.type(), there, use.place());
  }

  plan::RoleOp role_;
  const SmallVector<plan::ProgramOp> programs_;
  OpBuilder members_; // where buffers go
  const plan::MemorySpace space_;
  const int64_t leastBytes_;
  const bool hostSums_;
  const LinkSpeed host_;
  llvm::SetVector<Operation *> moved_;                                  // buffers
  llvm::DenseMap<Operation *, SmallVector<GradientStay *, 1>> staysOf_; // by buffer; looked up
  // Of the role's ops, as these stood at first: moves would have MLIR number them all again. What has moved has the
  // place of the routine that it stands in front of. Looked up.
  llvm::DenseMap<Operation *, size_t> places_;
  llvm::DenseSet<Operation *> madeOnce_;       // of them; looked up
  llvm::DenseSet<Operation *> madeThere_;      // kernels that the host runs; looked up
  llvm::DenseMap<Operation *, HostSums> sums_; // by routine; looked up
};

struct OffloadGradients : ds::impl::OffloadGradientsBase<OffloadGradients> {
  using OffloadGradientsBase::OffloadGradientsBase;

  void runOnOperation() override {
    const FailureOr<plan::MemorySpace> where = spaceAway(getOperation(), space, leastBytes);
    if (failed(where))
      return signalPassFailure();
    for (auto role : getOperation().getOps<plan::RoleOp>())
      GradientMove(role, *where, leastBytes, hostSums).run();
  }
};

} // namespace
