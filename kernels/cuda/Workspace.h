//===- Workspace.h - calls whose last operand is a workspace --------------===//
#pragma once

#include "kernels/Call.h"
#include "kernels/KernelSignatures.h"
#include "kernels/WidenedCall.h"

#include <string>

namespace ds::kernels::cuda {

/// An invocation whose kernel has a workspace on CUDA and none on a CPU, taken apart: the shared checks see the rest.
struct WithWorkspace {
  explicit WithWorkspace(const Invocation &whole) : invocation(whole) {
    const Call call(whole);
    call.require(call.operandCount() > 0, "needs a workspace as its last operand");
    operand = call.operandCount() - 1;
    call.expectDType(operand, DType::U8);
    bytes = call.elements(operand);
    invocation.operands.pop_back();
    wide = float32Invocation(invocation);
  }

  /// For kernels that cannot do with less than what a plan reserves.
  void require(int64_t needed) const {
    Call(invocation)
        .require(bytes >= needed,
                 "workspace must have " + std::to_string(needed) + " bytes, not " + std::to_string(bytes));
  }

  Invocation invocation; ///< without the workspace
  Invocation wide;       ///< for the shared checks: float32 for bfloat16
  size_t operand = 0;    ///< the workspace
  int64_t bytes = 0;
};

} // namespace ds::kernels::cuda
