//===- OffloadGradients.cpp - gradients leave as soon as they are computed ---===//
//
// 1. A gradient whose update the host will make lies in host memory or on NVMe: the kernels of its update are left to
//    ds-offload-optimizer, which runs them where it lies.
// 2. What else names it uses a buffer in device memory: a copy takes back what it writes, another brings what it reads
//    of micro-batches before. Commands of one routine that touch the same bytes share that buffer: contributions to a
//    bucket and the reduction that follows them. A reduce_scatter adds rank by rank onto the owner's slice, so the
//    slice comes, and keeps its order of sums.
// 3. An addition that is alone is left to ds-offload-optimizer, too: what is added leaves, and the host adds it.
// 4. A sum begins with zeros. Where one call of one routine makes all of it, they are written in device memory there.
// Ren et al., ZeRO-Offload, USENIX ATC 2021, section 4.1: gradients leave while the backward computes the next.
//
//===----------------------------------------------------------------------===//
#include "compiler/passes/offload/OperandCopies.h"
#include "compiler/passes/offload/Passes.h"
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

/// Bytes [begin, end) of a gradient.
struct Bytes {
  int64_t begin, end;

  bool overlaps(const Bytes &other) const { return begin < other.end && other.begin < end; }
};

/// One operand of a command that is a gradient which has moved.
struct Use {
  plan::CommandOpInterface command;
  unsigned index;

  Bytes range() const {
    const auto [begin, end] = plan::CommandOpInterface(command).getByteRange(index);
    return {begin, end};
  }
  bool reads() const { return plan::CommandOpInterface(command).reads(index); }
  bool writes() const { return plan::CommandOpInterface(command).writes(index); }
  RankedTensorType type() const { return plan::CommandOpInterface(command).getTensor(index); }
  TensorPlace place() const { return placeOf(command, index); }
};

/// Uses of the same bytes of one gradient in one routine, in their order.
struct Stay {
  Value away;
  Bytes range;
  SmallVector<Use> uses;
  bool beginsWithZeros = false;

  Operation *first() const { return uses.front().command; }
  /// One kernel that adds to what lies there.
  bool isAddition() const {
    auto kernel = dyn_cast<plan::KernelOp>(first());
    return kernel && kernel.getKernel() == "elementwise" &&
           llvm::all_of(uses, [&](const Use &use) { return use.command == first(); }) &&
           llvm::any_of(uses, [](const Use &use) { return use.reads(); });
  }
};

plan::Phase phaseOf(Operation *command) { return cast<plan::RoutineOp>(command->getParentOp()).getPhase(); }

/// Whether a sum begins with it.
bool zeroes(Operation *command) { return isa<plan::FillOp>(command) && phaseOf(command) == plan::Phase::Begin; }

/// Of a kernel that reads and writes a parameter.
bool isUpdate(Operation *op) {
  if (!isa<plan::KernelOp>(op))
    return false;
  auto command = cast<plan::CommandOpInterface>(op);
  for (auto [index, operand] : llvm::enumerate(command.getBuffers()))
    if (operand.getDefiningOp<plan::BufferOp>().getCategory() == plan::Category::Weights &&
        command.getAccess(unsigned(index)) == plan::Access::ReadWrite)
      return true;
  return false;
}

/// Moves the gradients of one role.
class GradientMove {
public:
  GradientMove(plan::RoleOp role, plan::MemorySpace space, int64_t leastBytes)
      : role_(role), members_(role.getContext()), space_(space), leastBytes_(leastBytes) {}

  void run() {
    moved_ = moveBuffers(role_, space_, [&](plan::BufferOp buffer) { return isOffloaded(buffer); });
    llvm::MapVector<Operation *, SmallVector<Stay>> stays; // by routine
    for (auto routine : role_.getOps<plan::RoutineOp>())
      stays[routine] = staysIn(routine);
    for (Operation *buffer : moved_)
      elideZeros(cast<plan::BufferOp>(buffer), stays);
    for (auto &[routine, some] : stays) {
      moveZeros(cast<plan::RoutineOp>(routine));
      moveStays(cast<plan::RoutineOp>(routine), some);
    }
  }

private:
  /// Of which the host will make updates.
  bool isOffloaded(plan::BufferOp buffer) const {
    if (buffer.getScope() != plan::Scope::Step || buffer.getCategory() != plan::Category::Gradients ||
        int64_t(buffer.getBytes()) < leastBytes_ ||
        !llvm::all_of(buffer->getUsers(), llvm::IsaPred<plan::KernelOp, plan::CollectiveOp, plan::FillOp>))
      return false;
    return llvm::any_of(buffer->getUsers(), [&](Operation *user) { return isUpdate(user) && isOnHost(user); });
  }

  bool isOnHost(Operation *update) const {
    return llvm::any_of(update->getOperands(), [&](Value operand) {
      return isStateAway(operand.getDefiningOp<plan::BufferOp>(), leastBytes_);
    });
  }

  /// Whether it runs where its operands lie: what updates take, but for an update that stays on the device.
  bool isLeft(Operation *command) const {
    const bool prepares = isa<plan::KernelOp>(command) && phaseOf(command) == plan::Phase::Update;
    return (prepares && (!isUpdate(command) || isOnHost(command))) || zeroes(command);
  }

  //===-- which uses belong together ----------------------------------------------===//

  SmallVector<Stay> staysIn(plan::RoutineOp routine) {
    SmallVector<Stay> stays;
    for (auto command : routine.getOps<plan::CommandOpInterface>())
      for (auto [index, buffer] : llvm::enumerate(command.getBuffers()))
        if (moved_.contains(buffer.getDefiningOp()) && !isLeft(command))
          add(stays, buffer, {command, unsigned(index)});
    llvm::stable_sort(stays, [](const Stay &a, const Stay &b) {
      return a.first() != b.first() && a.first()->isBeforeInBlock(b.first());
    });
    return stays;
  }

  /// One stay of those that the use touches, and of the use.
  static void add(SmallVector<Stay> &stays, Value away, const Use &use) {
    Stay joined{away, use.range(), {}};
    llvm::erase_if(stays, [&](const Stay &stay) {
      if (stay.away != away || !stay.range.overlaps(use.range()))
        return false;
      joined.range = {std::min(joined.range.begin, stay.range.begin), std::max(joined.range.end, stay.range.end)};
      llvm::append_range(joined.uses, stay.uses);
      return true;
    });
    llvm::stable_sort(joined.uses, [](const Use &a, const Use &b) {
      Operation *first = a.command, *second = b.command;
      return first != second && first->isBeforeInBlock(second);
    });
    joined.uses.push_back(use);
    stays.push_back(std::move(joined));
  }

  //===-- where sums begin --------------------------------------------------------===//

  /// What one call of one routine makes, all of it, needs no zeros elsewhere.
  void elideZeros(plan::BufferOp buffer, llvm::MapVector<Operation *, SmallVector<Stay>> &stays) {
    SmallVector<Stay *> own;
    int64_t bytes = 0;
    for (auto &[routine, some] : stays)
      for (Stay &stay : some)
        if (stay.away == buffer.getBuffer()) {
          own.push_back(&stay);
          bytes += stay.range.end - stay.range.begin;
        }
    const auto isInOne = [&](Stay *stay) { return stay->first()->getParentOp() == own[0]->first()->getParentOp(); };
    if (own.empty() || bytes != int64_t(buffer.getBytes()) || !llvm::all_of(own, isInOne) ||
        !isCalledOnce(cast<plan::RoutineOp>(own[0]->first()->getParentOp())))
      return;
    for (Operation *user : llvm::make_early_inc_range(buffer->getUsers()))
      if (zeroes(user)) {
        user->erase();
        for (Stay *stay : own)
          stay->beginsWithZeros = true;
      }
  }

  bool isCalledOnce(plan::RoutineOp routine) {
    return llvm::all_of(role_.getOps<plan::ProgramOp>(), [&](plan::ProgramOp program) {
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
      if (zeroes(fill) && moved_.contains(fill.getBuffers()[0].getDefiningOp()))
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

  //===-- buffers in device memory ------------------------------------------------===//

  void moveStays(plan::RoutineOp routine, ArrayRef<Stay> stays) {
    members_.setInsertionPoint(routine);
    Operation *before = nullptr; // the first command of the stay before
    for (const Stay &stay : stays) {
      if (stay.isAddition() && !stay.beginsWithZeros)
        continue;
      stay.uses.size() == 1 ? moveTensor(stay, before) : moveRange(stay, before);
      before = stay.first();
    }
  }

  /// A buffer for the tensor alone.
  void moveTensor(const Stay &stay, Operation *ahead) {
    const Use &use = stay.uses[0];
    const TensorPlace near{makeNear(stay, plan::tensorBytes(use.type()))};
    if (use.reads())
      bring(stay, use, use.type(), use.place(), near, ahead);
    if (use.writes())
      takeBack(use, near);
    setOperand(use.command, use.index, near);
  }

  /// A buffer for all bytes from the first to the last.
  void moveRange(const Stay &stay, Operation *ahead) {
    const Value near = makeNear(stay, stay.range.end - stay.range.begin);
    const auto nearOf = [&](TensorPlace place) {
      return TensorPlace{near, place.offset - stay.range.begin, place.stride, place.ranks};
    };
    SmallVector<Bytes> there; // what lies in `near`
    for (const auto &[number, use] : llvm::enumerate(stay.uses)) {
      if (use.reads())
        for (const Bytes &gap : gapsIn(use.range(), there)) {
          const TensorPlace place{stay.away, gap.begin};
          bring(stay, use, tensorOf(use, gap), place, nearOf(place), number == 0 ? ahead : nullptr);
        }
      if (use.reads() || use.place().stride == 0)
        there.push_back(use.range());
      if (use.writes() &&
          llvm::none_of(ArrayRef<Use>(stay.uses).drop_front(number + 1), [&, range = use.range()](const Use &later) {
            return later.writes() && later.range().overlaps(range);
          }))
        takeBack(use, nearOf(use.place()));
    }
    for (const Use &use : stay.uses)
      setOperand(use.command, use.index, nearOf(use.place()));
  }

  /// Of a range, what none of `parts` has.
  static SmallVector<Bytes> gapsIn(Bytes range, SmallVector<Bytes> parts) {
    llvm::stable_sort(parts, [](const Bytes &a, const Bytes &b) { return a.begin < b.begin; });
    SmallVector<Bytes> gaps;
    for (const Bytes &part : parts) {
      if (part.begin > range.begin)
        gaps.push_back({range.begin, std::min(part.begin, range.end)});
      range.begin = std::max(range.begin, part.end);
      if (range.begin >= range.end)
        return gaps;
    }
    gaps.push_back(range);
    return gaps;
  }

  static RankedTensorType tensorOf(const Use &use, const Bytes &bytes) {
    const int64_t element = use.type().getElementTypeBitWidth() / 8;
    return use.type().clone({(bytes.end - bytes.begin) / element});
  }

  Value makeNear(const Stay &stay, int64_t bytes) { return makeOf(stay.away, bytes, plan::MemorySpace::Device); }
  Value makeOf(Value away, int64_t bytes, plan::MemorySpace space) {
    auto buffer = away.getDefiningOp<plan::BufferOp>();
    return plan::BufferOp::create(members_, buffer.getLoc(), buffer.getName(), space, bytes, plan::Scope::Call,
                                  plan::Category::Communication);
  }

  /// Zeros or, by way of host memory, what lies elsewhere; that in front of `ahead`, which stands before the command.
  void bring(const Stay &stay, const Use &use, RankedTensorType type, const TensorPlace &away, const TensorPlace &near,
             Operation *ahead) {
    Operation *command = use.command;
    OpBuilder builder(ahead && !stay.beginsWithZeros ? ahead : command);
    if (stay.beginsWithZeros) {
      auto fill = plan::FillOp::create(builder, command->getLoc(), near.buffer, type,
                                       plan::CommandOpInterface(use.command).getQueueAttr().getValue());
      return fill.setByteOffsets({near.offset});
    }
    if (space_ != plan::MemorySpace::Nvme)
      return copyTensor(builder, use.command, type, away, near);
    const TensorPlace there{makeOf(away.buffer, plan::tensorBytes(type), plan::MemorySpace::Host)};
    copyTensor(builder, use.command, type, away, there);
    copyTensor(builder, use.command, type, there, near);
  }

  void takeBack(const Use &use, const TensorPlace &near) {
    OpBuilder builder(role_.getContext());
    builder.setInsertionPointAfter(awaitOf(use.command));
    if (space_ != plan::MemorySpace::Nvme)
      return copyTensor(builder, use.command, use.type(), near, use.place());
    const TensorPlace there{makeOf(use.place().buffer, plan::tensorBytes(use.type()), plan::MemorySpace::Host)};
    copyTensor(builder, use.command, use.type(), near, there);
    copyTensor(builder, use.command, use.type(), there, use.place());
  }

  plan::RoleOp role_;
  OpBuilder members_; // where buffers go
  const plan::MemorySpace space_;
  const int64_t leastBytes_;
  llvm::SetVector<Operation *> moved_; // buffers
};

struct OffloadGradients : ds::impl::OffloadGradientsBase<OffloadGradients> {
  using OffloadGradientsBase::OffloadGradientsBase;

  void runOnOperation() override {
    const FailureOr<plan::MemorySpace> where = spaceAway(getOperation(), space, leastBytes);
    if (failed(where))
      return signalPassFailure();
    for (auto role : getOperation().getOps<plan::RoleOp>())
      GradientMove(role, *where, leastBytes).run();
  }
};

} // namespace
