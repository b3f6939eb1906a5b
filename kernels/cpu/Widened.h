//===- Widened.h - kernels for bfloat16 from those for float32 ------------===//
#pragma once

#include "kernels/KernelRegistry.h"
#include "kernels/WidenedCall.h"

namespace ds::kernels {

/// The kernel of `wide` on float32 copies of the bfloat16 operands; what it writes is rounded once. Refuses operands
/// that are not of the types of KernelSignatures.h.
std::unique_ptr<Kernel> makeWidened(const Invocation &invocation, const BuildOptions &options, Factory wide);

/// `wide` as a factory that also knows bfloat16.
template <Factory wide> std::unique_ptr<Kernel> widened(const Invocation &invocation, const BuildOptions &options) {
  return hasBFloat16(invocation) ? makeWidened(invocation, options, wide) : wide(invocation, options);
}

} // namespace ds::kernels
