//===- ElideSingleGathers.cpp - a gather over one rank is what it gathers ---===//
//
// Where a mesh has one rank along an axis, its slice of a bucket is all of it: results of a gather are its inputs, a
// gather into a bucket leaves it as it is, and no bucket is sharded.
//
//===----------------------------------------------------------------------===//
#include "compiler/passes/zero/Passes.h"
#include "dialects/Dist/Dist.h"
#include "dialects/Dist/Mesh.h"

namespace ds {
#define GEN_PASS_DEF_ELIDESINGLEGATHERS
#include "compiler/passes/zero/Passes.h.inc"
} // namespace ds

using namespace mlir;
using namespace ds;

namespace {

struct ElideSingleGathers : ds::impl::ElideSingleGathersBase<ElideSingleGathers> {
  void runOnOperation() override {
    dist::MeshOp mesh = dist::requireMesh(getOperation());
    if (!mesh)
      return signalPassFailure();
    for (auto fragment : getOperation().getOps<dist::FragmentOp>())
      for (auto gather : llvm::make_early_inc_range(fragment.getOps<dist::AllGatherOp>()))
        if (dist::axisSize(mesh, gather.getAxis()) == 1) {
          gather->replaceAllUsesWith(gather.getInputs().take_front(gather->getNumResults()));
          gather.erase();
        }
    for (auto bucket : getOperation().getOps<dist::BucketOp>())
      if (dist::axisSize(mesh, bucket.getAxis()) == 1)
        bucket.setShardingAttr(dist::ShardingAttr::getReplicated(&getContext()));
  }
};

} // namespace
