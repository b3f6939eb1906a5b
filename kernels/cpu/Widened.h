//===- Widened.h - kernels for 16 bits from those for float32 --------------===//
#pragma once

#include "kernels/KernelRegistry.h"
#include "kernels/WidenedCall.h"

namespace ds::kernels {

/// The kernel of `wide` on float32 copies of the operands of 16 bits; what it writes is rounded once.
std::unique_ptr<Kernel> makeWidened(const Invocation &invocation, const BuildOptions &options, Factory wide);

/// `wide` as a factory that also knows floats of 16 bits. `narrow`, if there is one, computes with them as they are, or
/// makes no kernel where the machine or the call does not suit it.
template <Factory wide, Factory narrow = nullptr>
std::unique_ptr<Kernel> widened(const Invocation &invocation, const BuildOptions &options) {
  if (!isWidened(invocation))
    return wide(invocation, options);
  if constexpr (narrow != nullptr)
    if (auto kernel = narrow(invocation, options))
      return kernel;
  return makeWidened(invocation, options, wide);
}

/// `reference`, which knows float32 and float64 alone, as a factory that widens whatever else it meets.
template <Factory reference>
std::unique_ptr<Kernel> widenedReference(const Invocation &invocation, const BuildOptions &options) {
  return hasNarrowFloats(invocation) ? makeWidened(invocation, options, reference) : reference(invocation, options);
}

} // namespace ds::kernels
