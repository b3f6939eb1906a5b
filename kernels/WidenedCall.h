//===- WidenedCall.h - a call on bfloat16 as one on float32 ----------------===//
//
// On a CPU kernels for bfloat16 are those for float32 on copies of the operands, which lie in the call's workspace. A
// kernel that only moves elements knows bfloat16 itself.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "kernels/KernelRegistry.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace ds::kernels {

/// Whether a CPU computes the call in float32.
bool isWidened(const Invocation &invocation);

struct WidenedCall {
  /// Throws Error where the operands are not those of the kernel's row.
  explicit WidenedCall(const Invocation &invocation);

  struct Copy {
    size_t operand;
    int64_t elements, offset; ///< in bytes
    bool read, written;
  };

  Invocation call; ///< float32 for bfloat16, without workspace
  std::vector<Copy> copies;
  int64_t bytes = 0; ///< of all copies, each at a multiple of 64
};

} // namespace ds::kernels
