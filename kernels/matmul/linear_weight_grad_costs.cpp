#include "kernels/KernelTable.h"
#include "kernels/matmul/linear_weight_grad_call.h"

#include <algorithm>

namespace ds::kernels {

/// The product's.
int64_t linearWeightGradWorkspace(const CallTypes &types, const WorkspaceLimits &limits) {
  const LinearWeightGradCall call{Call(types.invocation())};
  return workspaceBytes(call.product, limits);
}

/// The product's, and of the sums where cuBLASLt does not make them: one after the other.
int64_t cudaLinearWeightGradWorkspace(const CallTypes &types, const WorkspaceLimits &limits) {
  const LinearWeightGradCall call{Call(types.invocation())};
  return std::max(workspaceBytes(call.product, limits), workspaceBytes(call.sums, limits));
}

/// Each element of dw is as many products as dy has rows.
double linearWeightGradFlops(const CallTypes &call) {
  return 2 * double(call.elements("dw")) * double(call.dim("dy", 0));
}

} // namespace ds::kernels
