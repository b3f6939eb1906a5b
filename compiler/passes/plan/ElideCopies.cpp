//===- ElideCopies.cpp - who computes a value writes it where it is wanted --===//
//
// Copy coalescing (Chaitin et al., 1981) on the straight line of a routine, where the interference of two buffers can
// be read off their uses. A copy of all of a buffer of scope call, its source, into bytes of another, its target, goes
// if
//
//   - nothing else touches the target's bytes from the command that first uses the source to the copy, and
//   - nothing writes the source, or the target's bytes, between the copy and the last use of the source.
//
// Then all uses of the source are uses of the target's bytes. Copies into values that outlive the call are tried first,
// then the others in the order of the routine: of several copies of one buffer the first takes its place.
//
//===----------------------------------------------------------------------===//
#include "compiler/analysis/KernelSelection.h"
#include "compiler/passes/plan/Passes.h"
#include "compiler/passes/plan/RoutineUses.h"
#include "dialects/Plan/Plan.h"

#include "llvm/ADT/STLExtras.h"

namespace ds {
#define GEN_PASS_DEF_ELIDECOPIES
#include "compiler/passes/plan/Passes.h.inc"
} // namespace ds

using namespace mlir;
using namespace ds;

namespace {

/// A command that copies all of one tensor.
struct Copy {
  plan::CommandOpInterface command;

  plan::BufferOp source() const { return bufferOf(0); }
  plan::BufferOp target() const { return bufferOf(1); }
  /// Whether it writes what passes to another routine.
  bool isKept() const { return target().getScope() == plan::Scope::Slot; }

private:
  plan::BufferOp bufferOf(unsigned index) const {
    return plan::CommandOpInterface(command).getBuffers()[index].getDefiningOp<plan::BufferOp>();
  }
};

/// The copies of one routine.
class RoutineCopies {
public:
  explicit RoutineCopies(plan::RoutineOp routine) : uses_(routine) {
    for (auto kernel : routine.getOps<plan::KernelOp>())
      if (isCopy(kernel))
        copies_.push_back({cast<plan::CommandOpInterface>(kernel.getOperation())});
    llvm::stable_sort(copies_, [](const Copy &a, const Copy &b) { return a.isKept() > b.isKept(); });
  }

  void elide() {
    for (const Copy &copy : copies_) {
      if (!canElide(copy))
        continue;
      plan::CommandOpInterface command = copy.command;
      plan::BufferOp source = copy.source(), target = copy.target();
      const int64_t offset = command.getByteOffsets()[1], stride = command.getRankStride(1);
      const FlatSymbolRefAttr communicator = command.getCommunicatorAttr();
      uses_.erase(command);
      uses_.merge(source, target, offset, stride, communicator);
    }
  }

private:
  bool canElide(const Copy &copy) {
    plan::CommandOpInterface command = copy.command;
    plan::BufferOp source = copy.source(), target = copy.target();
    if (source == target || source.getArena() != target.getArena() || source.getScope() != plan::Scope::Call ||
        command.getByteOffsets()[0] != 0 || int64_t(source.getBytes()) != plan::tensorBytes(command.getTensor(0)))
      return false;
    const int64_t at = uses_.positionOf(command);
    int64_t first = at, last = at; // uses of the source
    for (RoutineUse use : uses_.of(source)) {
      first = std::min(first, use.position);
      last = std::max(last, use.position);
      if ((use.position > at && use.writes()) || !mayMove(use, command))
        return false;
    }
    const auto [begin, end] = command.getByteRange(1);
    for (RoutineUse use : uses_.of(target)) {
      const bool before = first <= use.position && use.position < at;
      const bool behind = at < use.position && use.position <= last && use.writes();
      if ((before || behind) && use.touches(begin, end))
        return false;
    }
    return true;
  }

  /// Whether an operand may be strided as the copy's target is: the strides of a command are of one communicator.
  static bool mayMove(RoutineUse &use, plan::CommandOpInterface copy) {
    return copy.getRankStride(1) == 0 || !use.command.getCommunicatorAttr() ||
           use.command.getCommunicatorAttr() == copy.getCommunicatorAttr();
  }

  SmallVector<Copy> copies_;
  RoutineUses uses_;
};

struct ElideCopies : ds::impl::ElideCopiesBase<ElideCopies> {
  void runOnOperation() override {
    for (auto role : getOperation().getOps<plan::RoleOp>())
      for (auto routine : role.getOps<plan::RoutineOp>())
        RoutineCopies(routine).elide();
  }
};

} // namespace
