//===- BFloat16Call.h - calls on bfloat16, checked as calls on float32 ----===//
#pragma once

#include "kernels/WidenedCall.h"

namespace ds::kernels::cuda {

/// `call`, which was checked with float32 for bfloat16, with the type of its tensors.
template <typename CallT> CallT withOwnType(CallT call, const Invocation &invocation) {
  if (hasBFloat16(invocation))
    call.dtype = DType::BF16;
  return call;
}

} // namespace ds::kernels::cuda
