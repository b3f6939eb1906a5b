#include "kernels/KernelTable.h"
#include "kernels/norm/norm_grad_pieces.h"

namespace ds::kernels {

/// Sums over rows are dgamma and, for some norms, dbeta.
static int64_t sumsOf(const CallTypes &call) { return call.elements("dgamma") + call.elements("dbeta"); }

static int64_t rowsOf(const CallTypes &call) {
  const int64_t cols = call.elements("gamma");
  return cols ? call.elements("x") / cols : 0;
}

int64_t normGradWorkspace(const CallTypes &call, const WorkspaceLimits &) {
  const int64_t pieces = (rowsOf(call) + normGradRowsPerPiece - 1) / normGradRowsPerPiece;
  return pieces * sumsOf(call) * byteSize(call["gamma"].dtype);
}

int64_t cudaNormGradWorkspace(const CallTypes &call, const WorkspaceLimits &) {
  return cudaNormGradPieces(rowsOf(call), call.elements("gamma")) * sumsOf(call) * byteSize(call["gamma"].dtype);
}

} // namespace ds::kernels
