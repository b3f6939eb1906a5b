//===- WidenedCall.h - which operands of a call may be bfloat16 ----------===//
#pragma once

#include "kernels/KernelRegistry.h"

#include <cstddef>

namespace ds::kernels {

bool hasBFloat16(const Invocation &invocation);

/// The invocation with float32 for bfloat16, whose shapes and attributes the calls' own checks know; `reads` gets the
/// number of operands that are only read. Refuses operands that are not of the types of KernelSignatures.h. Without
/// bfloat16 the invocation itself.
Invocation float32Invocation(const Invocation &invocation, size_t *reads = nullptr);

} // namespace ds::kernels
