//===- VerifyOverlappedForm.cpp - check that collectives are waited for ---------===//
#include "compiler/analysis/CollectiveState.h"
#include "compiler/passes/zero/Passes.h"

namespace ds {
#define GEN_PASS_DEF_VERIFYOVERLAPPEDFORM
#include "compiler/passes/zero/Passes.h.inc"
} // namespace ds

using namespace mlir;
using namespace ds;

namespace {

struct VerifyOverlappedForm : ds::impl::VerifyOverlappedFormBase<VerifyOverlappedForm> {
  void runOnOperation() override {
    const BucketIndex buckets(getOperation());
    for (auto fragment : getOperation().getOps<dist::FragmentOp>())
      for (Operation &op : fragment.getBody().front())
        if (isStart(op) && failed(verifyStart(cast<dist::CollectiveOpInterface>(op), buckets)))
          return signalPassFailure();
  }

private:
  static bool isStart(Operation &op) {
    return isa<dist::CollectiveOpInterface>(op) && op.getNumResults() == 1 &&
           isa<dist::TokenType>(op.getResult(0).getType());
  }

  /// That a done is of its start's kind and fragment, the ops' verifiers check.
  static LogicalResult verifyStart(dist::CollectiveOpInterface start, const BucketIndex &buckets) {
    if (!start->hasOneUse())
      return start->emitOpError("is never waited for; ds-split-async-collectives makes one done for every start");
    Operation *done = *start->user_begin();
    const CollectiveState state(start, buckets);
    for (Operation *op = start->getNextNode(); op != done; op = op->getNextNode())
      if (StringAttr name = state.conflictWith(op)) {
        InFlightDiagnostic error = op->emitOpError() << "touches @" << name.getValue()
                                                     << " while a collective that holds it is under way; "
                                                        "ds-split-async-collectives should have put its done before";
        error.attachNote(start.getLoc()) << "started here";
        error.attachNote(done->getLoc()) << "done here";
        return error;
      }
    return success();
  }
};

} // namespace
