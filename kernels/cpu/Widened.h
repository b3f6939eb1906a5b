//===- Widened.h - kernels for 16 bits from those for float32 --------------===//
#pragma once

#include "kernels/KernelRegistry.h"
#include "kernels/WidenedCall.h"

namespace ds::kernels {

/// The kernel of `wide` on float32 copies of the operands of 16 bits; what it writes is rounded once.
std::unique_ptr<Kernel> makeWidened(const Invocation &invocation, const BuildOptions &options, Factory wide);

/// `narrow`, if there is one, computes with floats of 16 bits as they are, or makes no kernel where the machine or the
/// call does not suit it; else as makeWidened.
template <Factory wide, Factory narrow>
std::unique_ptr<Kernel> makeNarrow(const Invocation &invocation, const BuildOptions &options) {
  if constexpr (narrow != nullptr)
    if (auto kernel = narrow(invocation, options))
      return kernel;
  return makeWidened(invocation, options, wide);
}

/// `wide` as a factory that also knows floats of 16 bits.
template <Factory wide, Factory narrow>
std::unique_ptr<Kernel> widened(const Invocation &invocation, const BuildOptions &options) {
  return isWidened(invocation) ? makeNarrow<wide, narrow>(invocation, options) : wide(invocation, options);
}

/// The same of a reference, which knows none of them, not those either that its row names.
template <Factory reference, Factory narrow>
std::unique_ptr<Kernel> widenedReference(const Invocation &invocation, const BuildOptions &options) {
  return hasNarrowFloats(invocation) ? makeNarrow<reference, narrow>(invocation, options)
                                     : reference(invocation, options);
}

} // namespace ds::kernels
