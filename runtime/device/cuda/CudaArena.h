//===- CudaArena.h - memory of a GPU, and of the host beside it -----------===//
#pragma once

#include "runtime/device/Arena.h"

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace ds::runtime {

enum class CudaMemory {
  Device, ///< cudaMalloc on the GPU that is current
  Pinned, ///< cudaHostAlloc: pages of the host that stay where they are, so that copies run beside it and kernels; zero
};

/// One allocation of CUDA's.
class CudaArena final : public Arena {
public:
  /// Adds `bytes` to the counter as long as it lives. Throws ds::Error.
  CudaArena(CudaMemory memory, uint64_t bytes, uint64_t alignment, std::atomic<uint64_t> &counter);
  ~CudaArena() override;
  CudaArena(const CudaArena &) = delete;
  CudaArena &operator=(const CudaArena &) = delete;

  std::byte *base() const noexcept override { return base_; }
  uint64_t bytes() const noexcept override { return bytes_; }
  uint64_t touchedBytes() const noexcept override { return 0; }

private:
  const CudaMemory memory_;
  void *allocation_ = nullptr;
  std::byte *base_ = nullptr;
  const uint64_t bytes_;
  std::atomic<uint64_t> &counter_;
};

} // namespace ds::runtime
