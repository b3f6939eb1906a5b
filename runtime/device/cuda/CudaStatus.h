//===- CudaStatus.h - CUDA's errors as ours -------------------------------===//
#pragma once

#include "core/Error.h"
#include "core/Status.h"

#include <cstdint>
#include <cuda_runtime_api.h>
#include <string>

namespace ds::runtime {

/// "rank 3, queue compute: an illegal memory access was encountered (cudaErrorIllegalAddress)". `place`: "queue
/// compute".
inline Status cudaFailure(cudaError_t error, uint32_t rank, const char *place) noexcept {
  return Status::failure("rank %u, %s: CUDA says %s (%s)%s", rank, place, cudaGetErrorString(error),
                         cudaGetErrorName(error),
                         error == cudaErrorMemoryAllocation
                             ? ""
                             : "; run again with CUDA_LAUNCH_BLOCKING=1 or --check-numerics to learn at which command");
}

/// For what is set up before the first step.
inline void throwIfError(cudaError_t error, const std::string &what) {
  if (error != cudaSuccess)
    throw Error(what + ": CUDA says " + cudaGetErrorString(error) + " (" + cudaGetErrorName(error) + ")");
}

} // namespace ds::runtime
