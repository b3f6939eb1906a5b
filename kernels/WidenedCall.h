//===- WidenedCall.h - a call on floats of 16 bits as one on float32 -------===//
//
// On a CPU kernels for bfloat16 and float16 are those for float32 on copies of the operands, which lie in the call's
// workspace. A kernel that only moves elements needs none.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "kernels/KernelRegistry.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace ds::kernels {

bool hasNarrowFloats(const Invocation &invocation);

/// Whether a CPU computes the call in float32. Operands whose row names their type of 16 bits are read as they are.
bool isWidened(const Invocation &invocation);

struct WidenedCall {
  /// Throws Error where the operands are not those of the kernel's row.
  explicit WidenedCall(const Invocation &invocation);
  /// Gives the float32 call what a workspace has beyond the copies, if it has more than these.
  void leaveRestOf(int64_t workspace);

  struct Copy {
    size_t operand;
    DType dtype;
    int64_t elements, offset; ///< in bytes
    bool read, written;
  };

  Invocation call; ///< float32 for floats of 16 bits, without workspace until one is left to it
  std::vector<Copy> copies;
  int64_t bytes = 0; ///< of all copies, each at a multiple of 64
};

} // namespace ds::kernels
