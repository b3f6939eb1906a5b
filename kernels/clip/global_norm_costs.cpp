#include "kernels/KernelTable.h"
#include "kernels/clip/global_norm_pieces.h"

namespace ds::kernels {

/// A sum of 128 bits and a largest number of each piece.
int64_t cudaGlobalNormWorkspace(const CallTypes &call, const WorkspaceLimits &) {
  return normPieces(int64_t(call.invocation().operands.size()) - 1) * (16 + 8);
}

} // namespace ds::kernels
