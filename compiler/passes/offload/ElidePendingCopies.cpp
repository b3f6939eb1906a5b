//===- ElidePendingCopies.cpp - a gradient leaves for where the next step's update reads it ---===//
//
// A copy of a gradient into the pending one goes, where both lie in the same memory and a step uses the gradient behind
// all that reads what was pending before. What makes it makes the pending one then.
//
//===----------------------------------------------------------------------===//
#include "compiler/passes/offload/OperandCopies.h"
#include "compiler/passes/offload/Passes.h"
#include "compiler/passes/offload/StepOrder.h"
#include "dialects/Plan/Plan.h"

#include "llvm/ADT/STLExtras.h"

namespace ds {
#define GEN_PASS_DEF_ELIDEPENDINGCOPIES
#include "compiler/passes/offload/Passes.h.inc"
} // namespace ds

using namespace mlir;
using namespace ds;

namespace {

/// The copies of one role.
class PendingCopies {
public:
  explicit PendingCopies(plan::RoleOp role) : role_(role), order_(role) {}

  void run() {
    SmallVector<plan::KernelOp> copies;
    role_.walk([&](plan::KernelOp kernel) {
      if (isPendingCopy(kernel))
        copies.push_back(kernel);
    });
    for (plan::KernelOp copy : copies)
      if (mayGo(copy))
        elide(copy);
  }

private:
  static plan::BufferOp bufferOf(plan::KernelOp copy, unsigned index) {
    return copy.getBuffers()[index].getDefiningOp<plan::BufferOp>();
  }

  bool mayGo(plan::KernelOp copy) const {
    plan::BufferOp gradient = bufferOf(copy, 0), pending = bufferOf(copy, 1);
    auto command = cast<plan::CommandOpInterface>(copy.getOperation());
    const bool isWhole = gradient.getBytes() == pending.getBytes() &&
                         int64_t(gradient.getBytes()) == plan::tensorBytes(command.getTensor(0)) &&
                         command.getRankStride(0) == 0 && command.getRankStride(1) == 0;
    if (!isWhole || gradient.getArena() != pending.getArena() || gradient.getScope() != plan::Scope::Step)
      return false;
    StepPlace first = StepPlace::end(); // at which the gradient is used
    for (Operation *user : gradient->getUsers())
      first = isa<plan::CopyOp, plan::KernelOp, plan::FillOp>(user) ? std::min(first, order_.firstOf(user))
                                                                    : StepPlace::start();
    return llvm::all_of(pending->getUsers(),
                        [&](Operation *user) { return user == copy || order_.lastOf(user) < first; });
  }

  static void elide(plan::KernelOp copy) {
    plan::BufferOp gradient = bufferOf(copy, 0), pending = bufferOf(copy, 1);
    copy->erase();
    for (Operation *user : gradient->getUsers())
      if (Operation *routine = user->getParentOp(); routine->isBeforeInBlock(pending))
        pending->moveBefore(routine);
    gradient.getBuffer().replaceAllUsesWith(pending.getBuffer());
    gradient->erase();
  }

  plan::RoleOp role_;
  const StepOrder order_;
};

struct ElidePendingCopies : ds::impl::ElidePendingCopiesBase<ElidePendingCopies> {
  void runOnOperation() override {
    for (auto role : getOperation().getOps<plan::RoleOp>())
      PendingCopies(role).run();
  }
};

} // namespace
