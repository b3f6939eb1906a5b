#include "kernels/fp8/fp8_pieces.h"

#include "kernels/KernelTable.h"

#include <algorithm>

namespace ds::kernels {

/// A largest magnitude of each block of the GPU; none where numbers and their scale are of one such.
int64_t cudaQuantizeFp8Workspace(const CallTypes &types, const WorkspaceLimits &) {
  const bool isBlocked = QuantizeFp8Call{Call(types.invocation())}.scales.block != Float8Block::Tensor;
  return isBlocked ? 0 : quantizeFp8Blocks * int64_t(sizeof(float));
}

/// The factors of a block in float32, and what their product takes; the last block may be a shorter one.
int64_t fp8MatmulWorkspace(const CallTypes &types, const WorkspaceLimits &limits) {
  const Fp8MatmulCall call{Call(types.invocation())};
  const int64_t step = call.aScales.step(), rest = step > 0 ? call.k % step : 0;
  return fp8FactorBytes(call) + std::max(workspaceBytes(call.product(false, step), limits),
                                         rest > 0 ? workspaceBytes(call.product(false, rest), limits) : 0);
}

} // namespace ds::kernels
