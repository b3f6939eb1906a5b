//===- LoadedCode.h - a kernel that the plan carries, on the GPU ------------===//
#pragma once

#include "kernels/KernelRegistry.h"

#include <cuda_runtime_api.h>

#include <memory>

namespace ds::kernels::cuda {

/// A code that the driver has compiled. Equal codes of a process share one, on all of its GPUs.
class LoadedCode {
public:
  LoadedCode(cudaLibrary_t library, cudaKernel_t kernel, dim3 blocks, dim3 threads)
      : library_(library), kernel_(kernel), blocks_(blocks), threads_(threads) {}
  ~LoadedCode() { (void)cudaLibraryUnload(library_); }
  LoadedCode(const LoadedCode &) = delete;
  LoadedCode &operator=(const LoadedCode &) = delete;

  /// Enqueues the code, whose parameters are the operands' addresses.
  void launch(cudaStream_t stream, std::span<void *const> operands) const noexcept;

private:
  cudaLibrary_t library_;
  cudaKernel_t kernel_;
  dim3 blocks_, threads_;
};

/// The code of an invocation; null where there is none, or where the driver refuses it, which is said as fallBack says
/// it. Compiles, so nothing may be captured or timed meanwhile.
std::shared_ptr<const LoadedCode> loadedCode(const Invocation &invocation);

} // namespace ds::kernels::cuda
