#include "kernels/fp8/fp8_pieces.h"

#include "kernels/KernelTable.h"

namespace ds::kernels {

/// A largest magnitude of each block.
int64_t cudaQuantizeFp8Workspace(const CallTypes &, const WorkspaceLimits &) {
  return quantizeFp8Blocks * int64_t(sizeof(float));
}

/// The factors in float32, and what their product takes.
int64_t fp8MatmulWorkspace(const CallTypes &types, const WorkspaceLimits &limits) {
  const Fp8MatmulCall call{Call(types.invocation())};
  return fp8FactorBytes(call) + workspaceBytes(call.product(false), limits);
}

} // namespace ds::kernels
