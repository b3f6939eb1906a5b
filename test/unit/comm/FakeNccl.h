//===- FakeNccl.h - NCCL and what it needs of CUDA, on the host -----------===//
#pragma once

#include <atomic>

namespace ds::test {

/// Instead of libnccl and cudart: communicators among threads of one process, streams that are LateStreams. A
/// collective waits on its stream for all members, for ever, as NCCL does, unless it is aborted. What a test may set
/// and see:
struct FakeNccl {
  std::atomic<int> version;     ///< what ncclGetVersion says
  std::atomic<int> failingRank; ///< of communicators: asynchronous errors from now on; -1: none
  std::atomic<int> aborted = 0, destroyed = 0;
};
FakeNccl &fakeNccl();
void resetFakeNccl();

} // namespace ds::test
