//===- ElideRedundantGathers.cpp - gather once what is used again soon --------===//
//
// 1. List the gathers of a fragment with the instants at which what they gather is used (GatherUses.h).
// 2. Pair each gather with the one of the same bucket before it. Sort pairs by the elements of other parameters used
//    between.
// 3. Take pairs in that order. Where everything gathered in between stays within `max-live`, and the distance within
//    `max-reuse-distance`, the later gather goes and its uses read the earlier one.
// The limits are those of ZeRO stage 3 in DeepSpeed (stage3_max_live_parameters, stage3_max_reuse_distance;
// Rajbhandari et al., arXiv 1910.02054), which decides while it runs; here all uses are known, so the nearest pairs
// come first.
//
//===----------------------------------------------------------------------===//
#include "compiler/analysis/GatherUses.h"
#include "compiler/passes/zero/Passes.h"

namespace ds {
#define GEN_PASS_DEF_ELIDEREDUNDANTGATHERS
#include "compiler/passes/zero/Passes.h.inc"
} // namespace ds

using namespace mlir;
using namespace ds;

namespace {

/// Two gathers of one bucket with none of it between: the later may read what the earlier gathered.
struct Pair {
  size_t earlier, later;
  int64_t distance; // elements of other parameters used between
};

struct ElideRedundantGathers : ds::impl::ElideRedundantGathersBase<ElideRedundantGathers> {
  using ElideRedundantGathersBase::ElideRedundantGathersBase;

  void runOnOperation() override {
    if (maxLive < 0 || maxReuseDistance < 0) {
      getOperation().emitError() << "max-live is " << maxLive.getValue() << ", max-reuse-distance "
                                 << maxReuseDistance.getValue() << "; they must not be negative";
      return signalPassFailure();
    }
    const SymbolTable symbols(getOperation());
    for (auto fragment : getOperation().getOps<dist::FragmentOp>())
      elide(GatherUses(fragment, symbols));
  }

private:
  static std::vector<Pair> pairsOf(GatherUses &uses) {
    std::vector<Pair> pairs;
    llvm::DenseMap<Operation *, size_t> previous; // by bucket; looked up
    for (size_t i = 0; i < uses.gathers.size(); ++i) {
      const Gather &gather = uses.gathers[i];
      if (auto before = previous.find(gather.bucket); before != previous.end() && gather.op())
        pairs.push_back({before->second, i, uses.usedBetween(uses.gathers[before->second].last + 1, gather.first)});
      previous[gather.bucket] = i;
    }
    // The nearest first: they save a gather for the fewest bytes.
    llvm::stable_sort(pairs, [](const Pair &a, const Pair &b) { return a.distance < b.distance; });
    return pairs;
  }

  void elide(GatherUses uses) {
    std::vector<size_t> source(uses.gathers.size());
    for (size_t i = 0; i < source.size(); ++i)
      source[i] = i;
    for (const Pair &pair : pairsOf(uses)) {
      Gather &earlier = uses.gathers[pair.earlier], &later = uses.gathers[pair.later];
      const int64_t begin = earlier.last + 1, end = later.first;
      if (pair.distance > maxReuseDistance || !uses.fits(begin, end, earlier.elements(), maxLive))
        continue;
      uses.occupy(begin, end, earlier.elements());
      source[pair.later] = pair.earlier;
    }
    for (size_t i = 0; i < source.size(); ++i) { // sources come before, and are settled
      if (source[i] == i)
        continue;
      source[i] = source[source[i]];
      dist::AllGatherOp gone = uses.gathers[i].op();
      Operation *read = gone.getInputs().front().getDefiningOp();
      gone.getResult(0).replaceAllUsesWith(uses.gathers[source[i]].whole);
      gone.erase();
      if (read->use_empty())
        read->erase();
    }
  }
};

} // namespace
