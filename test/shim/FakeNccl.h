//===- FakeNccl.h - NCCL, among processes and threads of one host ---------===//
//
// Communicators over a file in memory (FakeNcclGroup.h), whose kernels run on the streams of the fake runtime
// (FakeNcclKernel.h): late, in the seed's order, and to an end only where all members' have come. What NCCL's guide
// forbids is refused in a sentence: ncclGetLastError has it, and where a caller may pass over the code it is also
// printed. DS_FAKE_NCCL_FAULT plants a fault: `mismatch`, the fifth group of a communicator has one element less than
// it was given; `silent`, nobody is told that a rank's process has ended.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <atomic>

namespace shim {

/// What a test may set and see.
struct FakeNccl {
  std::atomic<int> version;     ///< what ncclGetVersion says
  std::atomic<int> failingRank; ///< of communicators: asynchronous errors from now on; -1: none
  std::atomic<int> aborted, destroyed, refused;
};
FakeNccl &fakeNccl();
void resetFakeNccl();

} // namespace shim
