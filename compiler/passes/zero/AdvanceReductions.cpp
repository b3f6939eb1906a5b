//===- AdvanceReductions.cpp - reduce whole gradients during the backward --------===//
//
// 1. Find the last fragment before a role's update that adds to each bucket of gradients.
// 2. A reduction at the head of the update moves behind that last addition, with the op that reads the bucket.
// Then the rest of the backward runs while the gradients are summed. This is the overlap of DistributedDataParallel
// (Li et al., VLDB 2020): a bucket is reduced as soon as its last gradient is there. With several micro-batches a
// step nothing moves, for a gradient is complete with the last one only.
//
//===----------------------------------------------------------------------===//
#include "compiler/analysis/BucketIndex.h"
#include "compiler/analysis/Stages.h"
#include "compiler/passes/zero/Passes.h"

namespace ds {
#define GEN_PASS_DEF_ADVANCEREDUCTIONS
#include "compiler/passes/zero/Passes.h.inc"
} // namespace ds

using namespace mlir;
using namespace ds;

namespace {

struct AdvanceReductions : ds::impl::AdvanceReductionsBase<AdvanceReductions> {
  using AdvanceReductionsBase::AdvanceReductionsBase;

  void runOnOperation() override {
    if (microbatches != 1)
      return; // a gradient is complete with the last micro-batch only
    const SmallVector<dist::FragmentOp> updates = fragmentsOf(getOperation(), dist::Phase::Update);
    if (updates.size() == 1)
      return advance(updates.front(), llvm::to_vector(getOperation().getOps<dist::FragmentOp>()));
    const RoleUses uses(getOperation());
    for (int64_t role = 0; role < std::min(int64_t(updates.size()), uses.roles()); ++role)
      advance(updates[size_t(role)], uses.fragmentsOf(role).getArrayRef());
  }

private:
  /// From the update to the fragments before it, all of one role.
  void advance(dist::FragmentOp update, ArrayRef<dist::FragmentOp> fragments) {
    const SymbolTable symbols(getOperation());
    const BucketIndex buckets(getOperation());
    llvm::DenseMap<Operation *, Operation *> last; // contributions to each bucket; looked up
    for (dist::FragmentOp fragment : fragments)
      if (fragment != update)
        for (auto accumulate : fragment.getOps<train::AccumulateOp>())
          if (dist::BucketOp bucket = buckets.bucketOf(accumulate.getVariableAttr().getAttr()))
            last[bucket] = accumulate;
    for (auto read : llvm::make_early_inc_range(update.getOps<dist::ReadWholeOp>())) {
      Operation *contribution = last.lookup(symbols.lookup(read.getBucket()));
      if (!contribution || !read.getResult().hasOneUse())
        continue;
      Operation *sum = *read.getResult().getUsers().begin();
      if (!isa<dist::AllReduceOp, dist::ReduceScatterOp>(sum) || sum->getNumOperands() != 1)
        continue;
      sum->moveAfter(contribution);
      read->moveBefore(sum);
    }
  }
};

} // namespace
