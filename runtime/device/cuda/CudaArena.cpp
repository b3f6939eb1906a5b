//===- CudaArena.cpp - memory of a GPU, and of the host beside it ---------===//
#include "runtime/device/cuda/CudaArena.h"

#include "runtime/device/cuda/CudaStatus.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <cuda_runtime_api.h>
#include <string>

namespace ds::runtime {
namespace {

/// What cudaMalloc and cudaHostAlloc align to by themselves.
constexpr uint64_t ownAlignment = 256;

/// Bytes to ask for so that `bytes` fit behind an aligned address; at least one, since an address is wanted.
uint64_t bytesToAsk(uint64_t bytes, uint64_t alignment) {
  return std::max<uint64_t>(1, bytes + (alignment > ownAlignment ? alignment : 0));
}

std::byte *aligned(void *allocation, uint64_t alignment) {
  const auto address = reinterpret_cast<uintptr_t>(allocation);
  return static_cast<std::byte *>(allocation) + ((address + alignment - 1) / alignment * alignment - address);
}

} // namespace

CudaArena::CudaArena(CudaMemory memory, uint64_t bytes, uint64_t alignment, std::atomic<uint64_t> &counter)
    : memory_(memory), bytes_(bytes), counter_(counter) {
  const std::string size = std::to_string(bytes) + " bytes";
  if (memory == CudaMemory::Device)
    throwIfError(cudaMalloc(&allocation_, bytesToAsk(bytes, alignment)), "the device arena of " + size);
  else
    throwIfError(cudaHostAlloc(&allocation_, bytesToAsk(bytes, alignment), cudaHostAllocPortable),
                 "the host arena of " + size + " of pinned memory");
  base_ = aligned(allocation_, alignment);
  if (memory == CudaMemory::Pinned)
    std::memset(base_, 0, bytes);
  counter_ += bytes;
}

CudaArena::~CudaArena() {
  counter_ -= bytes_;
  (void)(memory_ == CudaMemory::Device ? cudaFree(allocation_) : cudaFreeHost(allocation_));
}

} // namespace ds::runtime
