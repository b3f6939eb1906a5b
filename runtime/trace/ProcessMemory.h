//===- ProcessMemory.h - memory as the operating system counts it ---------===//
#pragma once

#include <cstdint>

namespace ds::runtime {

/// Anonymous bytes of this process that are resident now: heap, stacks, arenas; not files. 0 where the system does not
/// tell. Reads /proc/self/status; allocates nothing.
uint64_t anonymousResidentBytes() noexcept;

} // namespace ds::runtime
