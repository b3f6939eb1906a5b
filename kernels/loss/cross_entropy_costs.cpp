#include "kernels/KernelTable.h"
#include "kernels/cuda/SumBytes.h"

namespace ds::kernels {

/// A loss a row.
int64_t cudaCrossEntropyWorkspace(const CallTypes &call, const WorkspaceLimits &) {
  return call.elements("labels") * cudaSumBytes(call["logits"].dtype);
}

/// How many labels count.
int64_t cudaCrossEntropyGradWorkspace(const CallTypes &, const WorkspaceLimits &) { return 8; }

/// Both.
int64_t cudaCrossEntropyWithGradWorkspace(const CallTypes &call, const WorkspaceLimits &) {
  return (1 + call.elements("labels")) * cudaSumBytes(call["logits"].dtype);
}

} // namespace ds::kernels
