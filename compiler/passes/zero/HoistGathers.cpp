//===- HoistGathers.cpp - gather ahead of use, as far as the budget allows -----===//
//
// For each gather of a fragment in program order: move it ahead, use by use, as long as what is gathered and not yet
// used stays within `prefetch` elements, everything gathered within `max-live`, and it does not pass the gather
// before it. This is the prefetching of ZeRO stage 3 and FSDP (Rajbhandari et al., arXiv 2104.07857; Zhao et al.,
// arXiv 2304.11277), decided before the run.
//
// The order of gathers stays: they share a queue, so one that waited for a later one would gain nothing.
//
//===----------------------------------------------------------------------===//
#include "compiler/analysis/GatherUses.h"
#include "compiler/passes/zero/Passes.h"

namespace ds {
#define GEN_PASS_DEF_HOISTGATHERS
#include "compiler/passes/zero/Passes.h.inc"
} // namespace ds

using namespace mlir;
using namespace ds;

namespace {

struct HoistGathers : ds::impl::HoistGathersBase<HoistGathers> {
  using HoistGathersBase::HoistGathersBase;

  void runOnOperation() override {
    if (maxLive < 0 || prefetch < 0) {
      getOperation().emitError() << "max-live is " << maxLive.getValue() << ", prefetch " << prefetch.getValue()
                                 << "; they must not be negative";
      return signalPassFailure();
    }
    const SymbolTable symbols(getOperation());
    for (auto fragment : getOperation().getOps<dist::FragmentOp>())
      hoist(GatherUses(fragment, symbols));
  }

private:
  void hoist(GatherUses uses) {
    std::vector<int64_t> ahead(size_t(uses.instants())); // elements gathered and not yet used, by instant
    int64_t previous = 0;                                // when the gather before is issued
    for (Gather &gather : uses.gathers) {
      if (!gather.op() || gather.last < 0)
        continue;
      const int64_t elements = gather.elements();
      int64_t begin = gather.first;
      while (begin > previous && ahead[size_t(begin - 1)] + elements <= prefetch &&
             uses.fits(begin - 1, begin, elements, maxLive))
        ahead[size_t(--begin)] += elements;
      uses.occupy(begin, gather.first, elements);
      previous = begin;
      if (begin == gather.first)
        continue;
      Operation *before = uses.views[size_t(begin)];
      gather.op().getInputs().front().getDefiningOp()->moveBefore(before);
      gather.op()->moveBefore(before);
    }
  }
};

} // namespace
