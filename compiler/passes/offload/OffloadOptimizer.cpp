//===- OffloadOptimizer.cpp - optimizer state lives elsewhere --------------===//
//
// Buffers of moments move to the arena of host memory or NVMe; what is small, or named by another command than a
// kernel, stays. Gradients that wait for the next step's update lie where gradients do. ds-run-on-host moves the
// updates that name them. Ren et al., ZeRO-Offload, USENIX ATC 2021; Rajbhandari et al., ZeRO-Infinity, SC 2021.
// Gradients leave and parameters come back; moments in host memory never move.
//
//===----------------------------------------------------------------------===//
#include "compiler/passes/offload/OperandCopies.h"
#include "compiler/passes/offload/Passes.h"
#include "dialects/Plan/Plan.h"

namespace ds {
#define GEN_PASS_DEF_OFFLOADOPTIMIZER
#include "compiler/passes/offload/Passes.h.inc"
} // namespace ds

using namespace mlir;
using namespace ds;

namespace {

struct OffloadOptimizer : ds::impl::OffloadOptimizerBase<OffloadOptimizer> {
  using OffloadOptimizerBase::OffloadOptimizerBase;

  void runOnOperation() override {
    const FailureOr<plan::MemorySpace> where = spaceAway(getOperation(), space, leastBytes),
                                       gradients = spaceAway(getOperation(), pending, leastBytes);
    if (failed(where) || failed(gradients))
      return signalPassFailure();
    for (auto role : getOperation().getOps<plan::RoleOp>())
      for (bool waits : {false, true})
        moveBuffers(role, waits ? *gradients : *where, [&](plan::BufferOp buffer) {
          return isStateAway(buffer, leastBytes) && isPending(buffer) == waits;
        });
  }
};

} // namespace
