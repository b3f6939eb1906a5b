//===- ReadAhead.cpp - files are read before the backward ends -------------===//
//
// 1. What the routine of the update reads from files, for gradients that are clipped or come last, is read while the
//    backward goes on: nothing in between writes it. Host memory holds it until its update.
// 2. Reads stand as late as the drive allows: one after another, the last ends with the backward even if the drive is
//    half as fast as it should be. Other reads of the backward keep their places.
// 3. A backward of several micro-batches is one routine that is called for each. Then reads stand in front of the last
//    call.
// 4. Of so many bytes at most: the first updates', since the others' are read while these are made.
//
//===----------------------------------------------------------------------===//
#include "compiler/analysis/BufferUses.h"
#include "compiler/analysis/Cost.h"
#include "compiler/passes/offload/OperandCopies.h"
#include "compiler/passes/offload/Passes.h"
#include "compiler/passes/offload/RoutineTimes.h"
#include "compiler/passes/offload/StepStart.h"
#include "dialects/Plan/Plan.h"

#include <algorithm>

namespace ds {
#define GEN_PASS_DEF_READAHEAD
#include "compiler/passes/offload/Passes.h.inc"
} // namespace ds

using namespace mlir;
using namespace ds;

namespace {

/// Reads have so many times as long as the drive should take: it is slower now and then, and reads of the backward's
/// own updates go before.
constexpr double slack = 2;

bool isRead(Operation *op) {
  auto copy = dyn_cast<plan::CopyOp>(op);
  return copy && spaceOf(copy.getBuffers()[0]) == plan::MemorySpace::Nvme &&
         spaceOf(copy.getBuffers()[1]) == plan::MemorySpace::Host;
}

double bytesOf(Operation *read) { return double(plan::tensorBytes(cast<plan::CommandOpInterface>(read).getTensor(0))); }

/// Moves the reads of one role.
class Reads {
public:
  Reads(plan::RoleOp role, int64_t bytes) : role_(role), bytes_(bytes), drive_(linkSpeed(role, "host-nvme")) {}

  void run() {
    if (drive_.bytesPerSecond == 0 || !LayerGroups(role_).empty() || !findRoutines())
      return;
    SmallVector<plan::CopyOp> reads = movable();
    if (lastCall_) {
      if (reads.empty())
        return;
      plan::RoutineOp start = startBefore(lastCall_);
      for (plan::CopyOp read : reads)
        moveTo(read, start, start.getBody().front().end());
    } else
      moveInto(reads);
  }

private:
  /// The update of a step, and the last backward before it.
  bool findRoutines() {
    for (auto program : role_.getOps<plan::ProgramOp>()) {
      if (program.getName() != "step")
        continue;
      plan::CallOp before;
      for (plan::CallOp call : program.getCallsBeforeTail()) {
        auto routine = SymbolTable::lookupNearestSymbolFrom<plan::RoutineOp>(program, call.getRoutineAttr());
        step_.insert(routine);
        if (routine.getPhase() == plan::Phase::Update)
          update_ = routine;
        else if (routine.getPhase() == plan::Phase::Backward || routine.getPhase() == plan::Phase::Weight) {
          backward_ = routine;
          before = call;
        }
      }
      if (!update_ || !backward_ || !backward_->isBeforeInBlock(update_) ||
          callsIn(program, update_.getSymNameAttr()) != 1)
        return false;
      if (callsIn(program, backward_.getSymNameAttr()) > 1)
        lastCall_ = before;
      return true;
    }
    return false;
  }

  /// Reads of the update that may come before it, the first of them, as far as there is room.
  SmallVector<plan::CopyOp> movable() {
    SmallVector<plan::CopyOp> reads;
    double left = double(bytes_);
    for (auto copy : update_.getOps<plan::CopyOp>())
      if (isRead(copy) && mayComeEarlier(copy) && (left -= bytesOf(copy)) >= 0)
        reads.push_back(copy);
    return reads;
  }

  bool mayComeEarlier(plan::CopyOp copy) {
    auto command = cast<plan::CommandOpInterface>(copy.getOperation());
    return llvm::none_of(copy.getBuffers(), [&](Value buffer) {
      return llvm::any_of(buffer.getUsers(), [&](Operation *user) {
        auto other = dyn_cast<plan::CommandOpInterface>(user);
        const bool isBefore = user->getParentOp() == update_ ? user->isBeforeInBlock(copy.getOperation())
                                                             : step_.contains(user->getParentOp());
        return other && isBefore && conflict(other, command);
      });
    });
  }

  /// From the end of the backward to its start. What does not come in time stays.
  void moveInto(SmallVector<plan::CopyOp> &reads) {
    const RoutineTimes times(backward_);
    double next = times.end(); // when the drive must be free for what it reads next
    for (size_t i = times.ops().size(); i-- > 0;) {
      Operation *op = times.ops()[i], *before = op;
      while (!reads.empty() && next - slack * secondsOf(reads.back()) >= times.begin(i)) {
        next -= slack * secondsOf(reads.back());
        moveTo(reads.back(), backward_, before->getIterator());
        before = reads.pop_back_val();
      }
      if (isRead(op))
        next = std::min(next - secondsOf(op), times.begin(i));
    }
  }

  double secondsOf(Operation *read) const { return drive_.seconds(bytesOf(read)); }

  /// The buffer that it writes lives up to the update now; both are there before the routine.
  static void moveTo(plan::CopyOp read, plan::RoutineOp routine, Block::iterator before) {
    read->moveBefore(&routine.getBody().front(), before);
    for (Value operand : read.getBuffers())
      if (Operation *buffer = operand.getDefiningOp(); routine->isBeforeInBlock(buffer))
        buffer->moveBefore(routine);
    read.getBuffers()[1].getDefiningOp<plan::BufferOp>().setScope(plan::Scope::Step);
  }

  plan::RoleOp role_;
  const int64_t bytes_;
  const LinkSpeed drive_;
  plan::RoutineOp backward_, update_;
  plan::CallOp lastCall_;            // of a backward that is called several times
  llvm::DenseSet<Operation *> step_; // routines; looked up
};

struct ReadAhead : ds::impl::ReadAheadBase<ReadAhead> {
  using ReadAheadBase::ReadAheadBase;

  void runOnOperation() override {
    if (bytes < 0) {
      getOperation().emitError() << "bytes is " << bytes.getValue() << "; it must not be negative";
      return signalPassFailure();
    }
    for (auto role : getOperation().getOps<plan::RoleOp>())
      Reads(role, bytes).run();
  }
};

} // namespace
