//===- Shadow.h - who touched which byte, and when ------------------------===//
//
// Every load and store of a kernel is reported (CMakeLists.txt). Time is counted in
// intervals: a barrier, and the start of a block, begins one. As blocks run one after another, an interval belongs to
// one block of one launch, and two accesses are in order if their intervals are of one block and differ.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "test/shim/cuda_runtime_api.h"

#include <cstddef>
#include <cstdint>

namespace shim {

/// What runs; the shadow's clock.
struct Now {
  bool inKernel = false;
  uint32_t launch = 1, block = 1, interval = 1; ///< the first intervals of launch and block, and the current one
  uint16_t thread = 0;                          ///< in its block
};
extern Now now;

/// The stacks of fibers, and that of the caller of a launch, whose arguments kernels read.
void setStacks(const void *begin, size_t bytes);
void setArguments(const void *begin, size_t bytes);
/// Shared memory becomes what no kernel can use: NaN in every type.
void poisonShared();

/// Ends the launch; `format` tells what two threads or one did. Defined in Machine.cpp.
[[noreturn]] void fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

/// An atomic access races with none; it must lie in device memory.
void checkAtomic(const void *address, unsigned bytes);

int64_t accesses();

} // namespace shim
