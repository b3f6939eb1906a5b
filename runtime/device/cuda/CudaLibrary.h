//===- CudaLibrary.h - what libds-cuda.so offers ds-run -------------------===//
#pragma once

#include "kernels/KernelRegistry.h"

#include <cstdint>
#include <string>
#include <vector>

namespace ds::runtime {

/// One GPU, as its driver describes it.
struct CudaDeviceInfo {
  std::string name;
  int major = 0, minor = 0; ///< compute capability
  uint64_t totalBytes = 0, freeBytes = 0;
};

/// What `ds-run info` prints. Versions are the libraries' own numbers, 0 where one does not say.
struct CudaInfo {
  std::string unusable; ///< why no GPU can be used, one sentence; empty: some can
  int driver = 0, runtime = 0;
  uint64_t cublasLt = 0, cudnn = 0, nccl = 0;
  std::vector<CudaDeviceInfo> devices;
};

/// The one thing that libds-cuda.so exports, by the function `dsCudaLibrary`. Library and ds-run are built together:
/// `form` changes with this struct, and with every class that crosses it.
struct CudaLibrary {
  static constexpr uint32_t currentForm = 1;
  uint32_t form = currentForm;
  CudaInfo (*info)() = nullptr;
  const kernels::KernelRegistry &(*kernels)() = nullptr;
};

} // namespace ds::runtime
