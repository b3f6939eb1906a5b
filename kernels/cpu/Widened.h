//===- Widened.h - kernels for 16 bits from those for float32 --------------===//
#pragma once

#include "kernels/KernelRegistry.h"
#include "kernels/WidenedCall.h"

namespace ds::kernels {

/// The kernel of `wide` on float32 copies of the operands of 16 bits; what it writes is rounded once.
std::unique_ptr<Kernel> makeWidened(const Invocation &invocation, const BuildOptions &options, Factory wide);

/// `wide` as a factory that also knows floats of 16 bits.
template <Factory wide> std::unique_ptr<Kernel> widened(const Invocation &invocation, const BuildOptions &options) {
  return isWidened(invocation) ? makeWidened(invocation, options, wide) : wide(invocation, options);
}

} // namespace ds::kernels
