//===- HeapWatch.h - who allocates, and what stays ------------------------===//
#pragma once

#include <cstdint>

namespace ds::test {

/// Counts heap calls of this process through its own malloc, free and so on (HeapWatch.cpp defines them). A call
/// belongs to the first frame outside libc and libstdc++: to this executable, which holds all of our objects, or to
/// another library (oneDNN).
struct HeapCounts {
  uint64_t ours = 0, libraries = 0; ///< allocations since watching began
  int64_t liveBytes = 0;            ///< of the whole process, since it began
};

void watchHeap(bool on);
HeapCounts heapCounts();

/// Where our first allocation since watching began came from: frames by name, to stderr.
void printFirstOwnAllocation();

} // namespace ds::test
