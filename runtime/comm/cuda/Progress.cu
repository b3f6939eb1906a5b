//===- Progress.cu - how far a stream has come in its collectives ---------===//
#include "runtime/comm/cuda/Progress.h"

#include <cstdint>
#include <cuda_runtime.h>

namespace ds::runtime {
namespace {

// One thread each; a stream's launches follow each other, so nobody else writes.
__global__ void begin(Progress *progress, uint32_t call) {
  progress->call = call;
  __threadfence_system(); // the number must not be seen before what it is about
  progress->begun = progress->begun + 1;
}

__global__ void end(Progress *progress) { progress->done = progress->done + 1; }

} // namespace

cudaError_t markBegun(Progress *progress, uint32_t call, cudaStream_t stream) noexcept {
#ifdef __CUDACC__
  begin<<<1, 1, 0, stream>>>(progress, call);
#else // test/shim
  shim::launch<begin>(1, 1, stream, progress, call);
#endif
  return cudaGetLastError();
}

cudaError_t markDone(Progress *progress, cudaStream_t stream) noexcept {
#ifdef __CUDACC__
  end<<<1, 1, 0, stream>>>(progress);
#else // test/shim
  shim::launch<end>(1, 1, stream, progress);
#endif
  return cudaGetLastError();
}

} // namespace ds::runtime
