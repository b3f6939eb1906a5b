//===- Progress.h - how far a stream has come in its collectives ----------===//
#pragma once

#include <cstdint>
#include <cuda_runtime_api.h>

namespace ds::runtime {

/// Host memory that a stream writes and the watchdog reads: also a launch recorded in a graph, which the host does not
/// see again, says where it is.
struct Progress {
  volatile uint64_t begun; ///< collectives or messages that the stream has come to
  volatile uint64_t done;
  volatile uint32_t call; ///< which one it came to last, as CallNames numbers them
};

/// Enqueues: begun + 1 and `call`; done + 1.
cudaError_t markBegun(Progress *progress, uint32_t call, cudaStream_t stream) noexcept;
cudaError_t markDone(Progress *progress, cudaStream_t stream) noexcept;

} // namespace ds::runtime
