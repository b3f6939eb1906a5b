//===- CombineCollectives.cpp - one launch for neighbours of a kind -------------===//
//
// Greedy, in program order. A collective stays open while only cheap ops follow it (reads, views, sums of blocks).
// The next one of its kind joins it if it does not need its results and both together are small enough. The joint op
// stands where the second stood, and what read the first one's results moves behind it. Fewer launches, larger
// messages: the fusion of small tensors in Horovod (Sergeev and Del Balso, arXiv 1802.05799) and ncclGroupStart.
//
//===----------------------------------------------------------------------===//
#include "compiler/analysis/TrainStep.h"
#include "compiler/passes/zero/Passes.h"
#include "dialects/Dist/Dist.h"
#include "dialects/Train/Train.h"

namespace ds {
#define GEN_PASS_DEF_COMBINECOLLECTIVES
#include "compiler/passes/zero/Passes.h.inc"
} // namespace ds

using namespace mlir;
using namespace ds;

namespace {

/// Ops that a collective may be delayed over: they cost next to nothing.
bool isCheap(Operation *op) {
  return isa<train::ReadOp, train::ConstantOp, train::ReshapeOp, train::BlockSumSquaresOp, dist::ReadWholeOp,
             dist::ViewOp, dist::PackOp, dist::LoadOp, dist::StoreOp>(op);
}

bool isWhole(Operation *op) {
  return isa<dist::AllGatherOp, dist::ReduceScatterOp, dist::AllReduceOp, dist::BroadcastOp, dist::AllToAllOp>(op);
}

int64_t elementsOf(dist::CollectiveOpInterface op) {
  int64_t count = 0;
  for (Value input : op.getInputs())
    count += cast<RankedTensorType>(input.getType()).getNumElements();
  return count;
}

struct CombineCollectives : ds::impl::CombineCollectivesBase<CombineCollectives> {
  using CombineCollectivesBase::CombineCollectivesBase;

  void runOnOperation() override {
    if (elements < 0) {
      getOperation().emitError() << "elements is " << elements.getValue() << "; it must not be negative";
      return signalPassFailure();
    }
    for (auto fragment : getOperation().getOps<dist::FragmentOp>())
      combine(fragment.getBody().front());
  }

private:
  void combine(Block &block) {
    dist::CollectiveOpInterface open;    // may still join the next of its kind
    SmallVector<Operation *> dependents; // cheap ops after it that read its results, in order
    for (Operation &op : llvm::make_early_inc_range(block)) {
      if (isWhole(&op)) {
        auto collective = cast<dist::CollectiveOpInterface>(op);
        const bool joins = open && matches(open, collective) && !dependsOn(&op, open, dependents);
        open = joins ? join(open, collective, dependents) : collective;
        if (!joins) // else those that moved behind it
          dependents.clear();
        continue;
      }
      if (!open || !isCheap(&op) || namesTarget(&op, open)) {
        open = {};
        dependents.clear();
      } else if (dependsOn(&op, open, dependents)) {
        dependents.push_back(&op);
      }
    }
  }

  bool matches(dist::CollectiveOpInterface a, dist::CollectiveOpInterface b) const {
    return a.getKind() == b.getKind() && a.getMeshAttr() == b.getMeshAttr() && a.getAxisAttr() == b.getAxisAttr() &&
           a.getDim() == b.getDim() && a.getShardingAttr() == b.getShardingAttr() &&
           !a.getIntoAttr() == !b.getIntoAttr() && a.getAccumulate() == b.getAccumulate() &&
           elementsOf(a) + elementsOf(b) <= elements;
  }

  static bool dependsOn(Operation *op, Operation *open, ArrayRef<Operation *> dependents) {
    return llvm::any_of(op->getOperands(), [&](Value operand) {
      return operand.getDefiningOp() == open || llvm::is_contained(dependents, operand.getDefiningOp());
    });
  }

  /// Whether `op` names state that the collective writes.
  static bool namesTarget(Operation *op, dist::CollectiveOpInterface collective) {
    if (!collective.getIntoAttr())
      return false;
    return llvm::any_of(op->getAttrDictionary(), [&](NamedAttribute attribute) {
      return llvm::is_contained(collective.getIntoAttr(), attribute.getValue());
    });
  }

  /// Both in one launch, where the second stands; what reads the first's results moves behind it.
  static dist::CollectiveOpInterface join(dist::CollectiveOpInterface first, dist::CollectiveOpInterface second,
                                          ArrayRef<Operation *> dependents) {
    OperationState state(second.getLoc(), second->getName());
    state.addOperands(first->getOperands());
    state.addOperands(second->getOperands());
    state.addTypes(first->getResultTypes());
    state.addTypes(second->getResultTypes());
    NamedAttrList attributes(second->getAttrDictionary());
    if (ArrayAttr into = first.getIntoAttr()) {
      SmallVector<Attribute> all(into.getValue());
      llvm::append_range(all, second.getIntoAttr());
      attributes.set("into", ArrayAttr::get(second.getContext(), all));
    }
    OpBuilder builder(second);
    SmallVector<int64_t> reference;
    for (dist::CollectiveOpInterface one : {first, second})
      if (auto numbers = one->getAttrOfType<DenseI64ArrayAttr>(referenceAttribute))
        llvm::append_range(reference, numbers.asArrayRef());
    if (!reference.empty())
      attributes.set(referenceAttribute, builder.getDenseI64ArrayAttr(reference));
    state.addAttributes(attributes);
    Operation *both = builder.create(state);
    const unsigned split = first->getNumResults();
    first->replaceAllUsesWith(both->getResults().take_front(split));
    second->replaceAllUsesWith(both->getResults().drop_front(split));
    Operation *last = both;
    for (Operation *op : dependents) {
      op->moveAfter(last);
      last = op;
    }
    first->erase();
    second->erase();
    return cast<dist::CollectiveOpInterface>(both);
  }
};

} // namespace
