//===- Refuse.cuh - a value that a kernel cannot accept -------------------===//
#pragma once

#include "kernels/KernelRegistry.h"

namespace ds::kernels::cuda {

/// Where a launch puts the first value it refuses.
struct Refuser {
  RefusedValue *refused;
  uint32_t caller;

  explicit Refuser(const CallContext &context) : refused(context.stream->refused), caller(context.caller) {}

  /// Keeps the first of all; the run fails at its end with what Kernel::refusal makes of the value.
  __device__ void operator()(int64_t value) const {
    if (atomicCAS_system(&refused->caller, 0u, 1 + caller) == 0)
      refused->value = value;
  }
};

} // namespace ds::kernels::cuda
