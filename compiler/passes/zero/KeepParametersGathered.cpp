//===- KeepParametersGathered.cpp - from the forward to the backward, for a step //
//
// 1. For each bucket, pair its last gather of the forward with its first of the backward. Sort by the elements of
//    other parameters used between.
// 2. In that order, keep what was gathered from the one to the other, if the limits of ds-elide-redundant-gathers
//    allow it.
// 3. Where they also allow it from the backward to the next micro-batch's forward, gather once a step, in a fragment
//    of phase gather.
// 4. Last, in the same way, what only the forward uses.
// With several stages a value for each micro-batch in flight would be kept, so parameters stay for the step or not
// at all. Cf. reshard_after_forward of FSDP (Zhao et al., arXiv 2304.11277) and the reuse distance of DeepSpeed's
// ZeRO stage 3.
//
//===----------------------------------------------------------------------===//
#include "compiler/analysis/BucketIndex.h"
#include "compiler/analysis/GatherUses.h"
#include "compiler/analysis/Stages.h"
#include "compiler/passes/zero/Passes.h"
#include "compiler/passes/zero/StepFragment.h"

#include "mlir/IR/Builders.h"

namespace ds {
#define GEN_PASS_DEF_KEEPPARAMETERSGATHERED
#include "compiler/passes/zero/Passes.h.inc"
} // namespace ds

using namespace mlir;
using namespace ds;

namespace {

/// A bucket gathered in both passes: the last gather of the forward, the first of the backward.
struct Candidate {
  size_t forward, backward;
  int64_t distance; // elements of other parameters used between
  bool onlyOnes;    // each is the only gather of the bucket in its fragment
};

struct KeepParametersGathered : ds::impl::KeepParametersGatheredBase<KeepParametersGathered> {
  using KeepParametersGatheredBase::KeepParametersGatheredBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    if (maxLive < 0 || maxReuseDistance < 0) {
      module.emitError() << "max-live is " << maxLive.getValue() << ", max-reuse-distance "
                         << maxReuseDistance.getValue() << "; they must not be negative";
      return signalPassFailure();
    }
    const FragmentIndex fragments(module);
    for (dist::FragmentOp forward : fragmentsOf(module, dist::Phase::Forward))
      keep(forward, fragments);
  }

private:
  /// Of one stage. With several, more than one micro-batch is in flight: what passes from a forward to its backward
  /// would be there as often, so parameters stay for the step or not at all.
  void keep(dist::FragmentOp forward, const FragmentIndex &fragments) {
    SymbolTable symbols(getOperation());
    dist::FragmentOp backward = fragments.find(dist::Phase::Backward, int64_t(*forward.getStage()));
    if (!backward)
      return;
    stages_ = fragments.stages();
    onlyForStep_ = stages_ > 1 && microbatches > 1;
    once_ = {};
    GatherUses before(forward, symbols), after(backward, symbols);
    for (const Candidate &candidate : candidatesOf(before, after))
      decide(candidate, before, after, forward, symbols);
    if (microbatches > 1)
      keepForwardOnly(before, after, forward, symbols);
  }

  static std::vector<Candidate> candidatesOf(GatherUses &before, GatherUses &after) {
    llvm::DenseMap<Operation *, std::pair<size_t, int>> last; // by bucket: index and count in the forward; looked up
    for (size_t i = 0; i < before.gathers.size(); ++i)
      last[before.gathers[i].bucket] = {i, last.lookup(before.gathers[i].bucket).second + 1};
    llvm::DenseMap<Operation *, int> counts;
    for (const Gather &gather : after.gathers)
      ++counts[gather.bucket];
    std::vector<Candidate> candidates;
    llvm::DenseSet<Operation *> seen;
    for (size_t i = 0; i < after.gathers.size(); ++i) {
      const Gather &gather = after.gathers[i];
      const auto match = last.find(gather.bucket);
      if (!gather.op() || !seen.insert(gather.bucket).second || match == last.end())
        continue;
      const auto [index, count] = match->second;
      const int64_t distance =
          before.usedBetween(before.gathers[index].last + 1, before.instants()) + after.usedBetween(0, gather.first);
      candidates.push_back({index, i, distance, count == 1 && counts.lookup(gather.bucket) == 1});
    }
    llvm::stable_sort(candidates, [](const Candidate &a, const Candidate &b) { return a.distance < b.distance; });
    return candidates;
  }

  void decide(const Candidate &candidate, GatherUses &before, GatherUses &after, dist::FragmentOp forward,
              SymbolTable &symbols) {
    Gather &first = before.gathers[candidate.forward], &second = after.gathers[candidate.backward];
    const int64_t elements = first.elements();
    if (!first.op())
      return;
    if (candidate.distance > maxReuseDistance)
      return say(first.bucket, "in each pass: stage3_max_reuse_distance, " + std::to_string(maxReuseDistance) +
                                   ", is less than the " + std::to_string(candidate.distance) +
                                   " elements used from the forward to the backward");
    if (!before.fits(first.last + 1, before.instants(), elements, maxLive) ||
        !after.fits(0, second.first, elements, maxLive))
      return say(first.bucket, "in each pass: kept between them, more than stage3_max_live_parameters, " +
                                   std::to_string(maxLive) + ", would be gathered");
    const int64_t toNext = after.usedBetween(second.last + 1, after.instants()) + before.usedBetween(0, first.first);
    const bool forStep = microbatches > 1 && candidate.onlyOnes && toNext <= maxReuseDistance &&
                         after.fits(second.last + 1, after.instants(), elements, maxLive) &&
                         before.fits(0, first.first, elements, maxLive);
    if (onlyForStep_ && !forStep)
      return say(first.bucket, "in each pass: several micro-batches are in flight, and kept for the step more than "
                               "stage3_max_live_parameters, " +
                                   std::to_string(maxLive) + ", would be gathered");
    say(first.bucket,
        forStep ? "once a step: " + whatAllowsIt() : "once a micro-batch: from the forward to the backward");
    before.occupy(first.last + 1, before.instants(), elements);
    after.occupy(0, second.first, elements);
    if (forStep) {
      after.occupy(second.last + 1, after.instants(), elements);
      before.occupy(0, first.first, elements);
    }
    FlatSymbolRefAttr value = makeValue(first.bucket, forStep, forward, symbols);
    if (forStep) {
      gatherOnce(first.op(), value, forward, symbols);
      loadInstead(first.op(), value);
    } else {
      // Behind the first use, for what stands between may run while it is gathered.
      OpBuilder builder(&getContext());
      builder.setInsertionPointAfter(before.views[size_t(first.first)]);
      dist::StoreOp::create(builder, first.op().getLoc(), first.whole, value);
    }
    loadInstead(second.op(), value);
  }

  /// Leaves the reason where the plan takes it from.
  static void say(dist::BucketOp bucket, const std::string &when) {
    bucket->setAttr(gatheredAttribute, StringAttr::get(bucket.getContext(), when));
  }

  std::string whatAllowsIt() const {
    return maxLive == unlimited ? "every rank works with all of it, in 16 bits"
                                : "stage3_max_live_parameters, " + std::to_string(maxLive) + ", allows it";
  }

  /// What the backward has no use for, an embedding or a bias, can but stay for the step.
  void keepForwardOnly(GatherUses &before, GatherUses &after, dist::FragmentOp forward, SymbolTable &symbols) {
    llvm::DenseMap<Operation *, int> counts; // gathers of a bucket; looked up
    for (const GatherUses *uses : {&before, &after})
      for (const Gather &gather : uses->gathers)
        ++counts[gather.bucket];
    for (Gather &gather : before.gathers) {
      if (counts.lookup(gather.bucket) != 1 || !gather.op())
        continue;
      const int64_t elements = gather.elements(), next = gather.last + 1;
      const int64_t toNext = before.usedBetween(next, before.instants()) + after.usedBetween(0, after.instants()) +
                             before.usedBetween(0, gather.first);
      if (toNext > maxReuseDistance || !before.fits(next, before.instants(), elements, maxLive) ||
          !after.fits(0, after.instants(), elements, maxLive) || !before.fits(0, gather.first, elements, maxLive))
        continue;
      before.occupy(next, before.instants(), elements);
      after.occupy(0, after.instants(), elements);
      before.occupy(0, gather.first, elements);
      say(gather.bucket, "once a step: " + whatAllowsIt());
      FlatSymbolRefAttr value = makeValue(gather.bucket, true, forward, symbols);
      gatherOnce(gather.op(), value, forward, symbols);
      loadInstead(gather.op(), value);
    }
  }

  static FlatSymbolRefAttr makeValue(dist::BucketOp bucket, bool forStep, dist::FragmentOp forward,
                                     SymbolTable &symbols) {
    OpBuilder builder(forward);
    auto value =
        dist::ValueOp::create(builder, bucket.getLoc(), (bucket.getSymName() + "::whole").str(), bucket.getWholeType());
    value.setBucketAttr(FlatSymbolRefAttr::get(bucket.getSymNameAttr()));
    value.setForStep(forStep);
    return FlatSymbolRefAttr::get(symbols.insert(value));
  }

  static void loadInstead(dist::AllGatherOp gather, FlatSymbolRefAttr value) {
    OpBuilder builder(gather);
    Value whole = dist::LoadOp::create(builder, gather.getLoc(), gather.getResult(0).getType(), value);
    Operation *read = gather.getInputs().front().getDefiningOp();
    gather.getResult(0).replaceAllUsesWith(whole);
    gather.erase();
    if (read->use_empty())
      read->erase();
  }

  /// The gather moves to the fragment @gather, which every step calls once, first.
  void gatherOnce(dist::AllGatherOp gather, FlatSymbolRefAttr value, dist::FragmentOp forward, SymbolTable &symbols) {
    if (!once_)
      once_ = stepFragment(forward, stages_, symbols);
    auto stores = once_.getOps<dist::StoreOp>(); // at the end: nothing waits for one gather before the next begins
    OpBuilder builder(&getContext());
    if (stores.empty())
      builder.setInsertionPointToEnd(&once_.getBody().front());
    else
      builder.setInsertionPoint(*stores.begin());
    Operation *read = builder.clone(*gather.getInputs().front().getDefiningOp());
    auto moved = cast<dist::AllGatherOp>(builder.clone(*gather));
    moved->setOperand(0, read->getResult(0));
    builder.setInsertionPointToEnd(&once_.getBody().front());
    dist::StoreOp::create(builder, gather.getLoc(), moved.getResult(0), value);
  }

  dist::FragmentOp once_; // of the stage
  int64_t stages_ = 1;
  bool onlyForStep_ = false;
};

} // namespace
