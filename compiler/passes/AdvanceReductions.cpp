//===- AdvanceReductions.cpp - reduce whole gradients during the backward --------===//
#include "compiler/passes/BucketIndex.h"
#include "compiler/passes/Passes.h"

namespace ds {
#define GEN_PASS_DEF_ADVANCEREDUCTIONS
#include "compiler/passes/Passes.h.inc"
} // namespace ds

using namespace mlir;
using namespace ds;

namespace {

struct AdvanceReductions : ds::impl::AdvanceReductionsBase<AdvanceReductions> {
  using AdvanceReductionsBase::AdvanceReductionsBase;

  void runOnOperation() override {
    const SymbolTable symbols(getOperation());
    auto update = symbols.lookup<dist::FragmentOp>("update"), backward = symbols.lookup<dist::FragmentOp>("backward");
    if (!update || !backward || microbatches != 1)
      return; // a gradient is complete with the last micro-batch only
    const BucketIndex buckets(getOperation());
    llvm::DenseMap<Operation *, Operation *> last; // contributions to each bucket; looked up
    for (auto accumulate : backward.getOps<train::AccumulateOp>())
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
