//===- SplitAsyncCollectives.cpp - a start and a done, work between -------------===//
//
// Every collective becomes a start, where it stood, and a done. From the start on, look for the first op that uses a
// result, uses state that the collective writes, or writes state that it reads: the done goes before it, or to the
// end of the fragment. Where reductions under way would hold more than `max-held` elements of gradients, the done
// goes before the reduction that would pass that. Cf. the async collectives of XLA (-start and -done ops) and the
// two reduction buffers of DeepSpeed.
//
//===----------------------------------------------------------------------===//
#include "compiler/analysis/CollectiveState.h"
#include "compiler/passes/zero/Passes.h"
#include "dialects/Dist/Dist.h"

namespace ds {
#define GEN_PASS_DEF_SPLITASYNCCOLLECTIVES
#include "compiler/passes/zero/Passes.h.inc"
} // namespace ds

using namespace mlir;
using namespace ds;

namespace {

/// Elements that nothing but `op`, if it is a reduction, keeps alive: gradients that it sends.
int64_t heldElements(Operation *op) {
  auto collective = dyn_cast<dist::CollectiveOpInterface>(op);
  if (collective && collective.getKind() == dist::CollectiveKind::AllGather)
    return 0;
  int64_t elements = 0;
  for (Value input : collective ? ValueRange(collective.getInputs()) : ValueRange())
    if (!isa_and_present<train::ReadOp, dist::ReadWholeOp>(input.getDefiningOp()))
      elements += cast<RankedTensorType>(input.getType()).getNumElements();
  return elements;
}

struct SplitAsyncCollectives : ds::impl::SplitAsyncCollectivesBase<SplitAsyncCollectives> {
  using SplitAsyncCollectivesBase::SplitAsyncCollectivesBase;

  void runOnOperation() override {
    const BucketIndex buckets(getOperation());
    for (auto fragment : getOperation().getOps<dist::FragmentOp>())
      for (Operation &op : llvm::make_early_inc_range(fragment.getBody().front()))
        if (isa<dist::AllGatherOp, dist::ReduceScatterOp, dist::AllReduceOp, dist::BroadcastOp, dist::AllToAllOp>(op))
          split(cast<dist::CollectiveOpInterface>(op), buckets);
  }

private:
  /// Whether `op` must come after a collective: it uses a result, or state that the collective holds.
  static bool needs(Operation *op, Operation *collective, const CollectiveState &state) {
    return llvm::any_of(op->getOperands(), [&](Value v) { return v.getDefiningOp() == collective; }) ||
           state.conflictWith(op);
  }

  /// The op that `op` must be done before, null for the end of the fragment.
  Operation *latestDone(dist::CollectiveOpInterface op, const BucketIndex &buckets) {
    const CollectiveState state(op, buckets);
    const int64_t held = heldElements(op);
    int64_t underWay = held;
    Operation *next = op->getNextNode();
    for (; next && !needs(next, op, state); next = next->getNextNode()) {
      underWay += heldElements(next);
      if (held > 0 && heldElements(next) > 0 && underWay > maxHeld)
        break;
    }
    return next;
  }

  void split(dist::CollectiveOpInterface op, const BucketIndex &buckets) {
    Operation *next = latestDone(op, buckets);
    OpBuilder builder(op);
    OperationState start(op.getLoc(), (op->getName().getStringRef() + "_start").str());
    start.addOperands(op->getOperands());
    start.addAttributes(op->getAttrs());
    start.addTypes(dist::TokenType::get(op.getContext()));
    Operation *begun = builder.create(start);
    if (next)
      builder.setInsertionPoint(next);
    else
      builder.setInsertionPointToEnd(op->getBlock());
    OperationState done(op.getLoc(), (op->getName().getStringRef() + "_done").str());
    done.addOperands(begun->getResults());
    done.addTypes(op->getResultTypes());
    op->replaceAllUsesWith(builder.create(done));
    op->erase();
  }
};

} // namespace
