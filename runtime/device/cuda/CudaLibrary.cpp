//===- CudaLibrary.cpp - what libds-cuda.so offers ds-run -----------------===//
#include "runtime/device/cuda/CudaLibrary.h"

#include "kernels/cuda/CudaKernels.h"
#include "runtime/comm/nccl/NcclVersion.h"

#include <cublasLt.h>
#include <cuda_runtime_api.h>
#include <cudnn.h>
#include <string>

namespace ds::runtime {
namespace {

CudaDeviceInfo describe(int device) {
  CudaDeviceInfo info;
  cudaDeviceProp properties;
  if (cudaGetDeviceProperties(&properties, device) != cudaSuccess)
    return info;
  info.name = properties.name;
  info.major = properties.major;
  info.minor = properties.minor;
  size_t free = 0, total = 0;
  if (cudaSetDevice(device) == cudaSuccess && cudaMemGetInfo(&free, &total) == cudaSuccess) {
    info.freeBytes = free;
    info.totalBytes = total;
  }
  return info;
}

CudaInfo describeAll() {
  CudaInfo info;
  (void)cudaDriverGetVersion(&info.driver);
  (void)cudaRuntimeGetVersion(&info.runtime);
  info.cublasLt = cublasLtGetVersion();
  info.cudnn = cudnnGetVersion();
  info.nccl = uint64_t(ncclVersion());
  int devices = 0;
  const cudaError_t error = cudaGetDeviceCount(&devices);
  if (error != cudaSuccess)
    info.unusable = cudaGetErrorString(error);
  for (int device = 0; device < devices; ++device)
    info.devices.push_back(describe(device));
  return info;
}

} // namespace
} // namespace ds::runtime

extern "C" const ds::runtime::CudaLibrary *dsCudaLibrary() {
  static constexpr ds::runtime::CudaLibrary library{.info = ds::runtime::describeAll,
                                                    .kernels = ds::kernels::cudaKernels};
  return &library;
}
