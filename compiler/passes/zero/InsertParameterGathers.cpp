//===- InsertParameterGathers.cpp - gather shared parameters before each use ---===//
//
// Every op that reads a sharded parameter, or a reshape of it, gets an all_gather of its bucket and a view of its
// own in front of it. Always right, and far too many: ds-elide-redundant-gathers, ds-keep-parameters-gathered and
// ds-hoist-gathers remove and move them. The gather before use is that of ZeRO stage 3 (Rajbhandari et al., arXiv
// 1910.02054).
//
//===----------------------------------------------------------------------===//
#include "compiler/analysis/BucketIndex.h"
#include "compiler/passes/zero/Passes.h"

#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace ds {
#define GEN_PASS_DEF_INSERTPARAMETERGATHERS
#include "compiler/passes/zero/Passes.h.inc"
} // namespace ds

using namespace mlir;
using namespace ds;

namespace {

struct InsertParameterGathers : ds::impl::InsertParameterGathersBase<InsertParameterGathers> {
  void runOnOperation() override {
    const BucketIndex buckets(getOperation());
    for (auto fragment : getOperation().getOps<dist::FragmentOp>())
      for (auto read : llvm::make_early_inc_range(fragment.getOps<train::ReadOp>()))
        if (buckets.isSharded(read.getVariableAttr().getAttr()))
          gatherAtUses(read, read.getResult(), buckets.find(read.getVariableAttr().getAttr()));
  }

private:
  /// Gives every op that reads `value`, the parameter or a reshape of it, a gather of its own; then erases the defining
  /// op.
  static void gatherAtUses(train::ReadOp read, Value value, const Membership &member) {
    for (OpOperand &use : llvm::make_early_inc_range(value.getUses())) {
      if (auto reshape = dyn_cast<train::ReshapeOp>(use.getOwner()))
        gatherAtUses(read, reshape.getResult(), member);
      else
        use.set(gather(use.getOwner(), cast<RankedTensorType>(value.getType()), read.getLoc(), member));
    }
    value.getDefiningOp()->erase();
  }

  static Value gather(Operation *user, RankedTensorType type, Location location, const Membership &member) {
    dist::BucketOp bucket = member.bucket;
    ImplicitLocOpBuilder b(bucket.getLoc(), user);
    Value own = train::ReadOp::create(b, bucket.getSliceType(), bucket.getSymNameAttr());
    auto whole = dist::AllGatherOp::create(b, TypeRange(bucket.getWholeType()), own, bucket.getMeshAttr(),
                                           bucket.getAxisAttr(), ArrayAttr(), UnitAttr());
    return dist::ViewOp::create(b, location, type, whole.getResult(0), member.offset);
  }
};

} // namespace
