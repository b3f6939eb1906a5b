//===- FakeRuntime.h - streams that run late, in any legal order ----------===//
//
// What a GPU's streams leave open is drawn: nothing that a stream is given runs before somebody waits for it or the
// seed says so, and of all that may run next the seed takes one. A stream keeps its order, and events order streams, so
// work that needs an order which nobody asked for goes wrong under some seed. DS_FAKE_CUDA_SEED is the first seed of a
// process, DS_FAKE_CUDA_GPUS the number of its GPUs (1). DS_FAKE_CUDA_FAULT plants one: `capture`, the tenth thing that
// is captured, or the first after it that is not NCCL's, cannot be; `graph`, there is no memory for graphs.
// DS_FAKE_CUDA_REPORT=1 ends a process with a line that says what ran.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "test/shim/cuda_runtime_api.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace shim {

/// 0: what came last runs first; 1: what came first; odd ones above run a little at every call, even ones nothing
/// before a wait.
void setSchedule(uint64_t seed);

/// Forgets the errors that ended devices, so that a test may go on after it has seen one.
void reviveDevices();

struct Work {
  const char *what;                  ///< "adamwKernel", for errors
  std::function<void()> run;         ///< on the processor
  std::vector<const void *> touched; ///< addresses that must be of live memory when it runs
  bool onAnyDevice = false;          ///< copies may be on streams of any device
  /// Asked before run(), again and again while it says no; other streams go on meanwhile. None: it may.
  std::function<bool()> mayRun{};
  /// Work of one turn runs in the order in which it was given, whatever its streams are.
  const void *turn = nullptr;
  double milliseconds = 0; ///< that it takes, by the clock of cudaEventElapsedTime
};

/// Gives the work to a stream, or does it at once where that is null.
cudaError_t submit(cudaStream_t stream, Work work);

/// From here on streams also go on while the process makes no call, as a GPU does: other processes may wait for it.
void goOnAlone();

/// Of the variable of the environment.
uint64_t numberOf(const char *variable, uint64_t otherwise);

/// Bytes that copies have brought to pageable memory of the host so far, for each of which their thread waits.
uint64_t bytesStagedToHost();

/// Whether all of the bytes are of one allocation of cudaMalloc's or cudaHostAlloc's.
bool isAllocated(const void *begin, size_t bytes);

/// Adds those of the words of a kernel's parameter that are addresses of CUDA's memory.
void addAddresses(std::vector<const void *> &found, const void *parameter, size_t bytes);

} // namespace shim
