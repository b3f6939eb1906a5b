//===- CudaLibrary.cpp - what libds-cuda.so offers ds-run -----------------===//
#include "runtime/plugins/CudaLibrary.h"

#include "core/Error.h"
#include "kernels/cuda/CudaKernels.h"
#include "kernels/cuda/Fallback.h"
#include "kernels/cuda/Tuner.h"
#include "runtime/comm/ControlPlane.h"
#include "runtime/comm/Transport.h"
#include "runtime/comm/cuda/CudaMover.h"
#include "runtime/comm/inprocess/ByteMover.h"
#include "runtime/comm/nccl/NcclTransport.h"
#include "runtime/comm/nccl/NcclVersion.h"
#include "runtime/device/Device.h"
#include "runtime/device/cpu/NvmeArena.h"
#include "runtime/device/cuda/CudaDevice.h"
#include "runtime/device/cuda/CudaStatus.h"
#include "runtime/device/cuda/GpuVerdicts.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cublasLt.h>
#include <cuda_runtime_api.h>
#include <cudnn.h>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace ds::runtime {
namespace {

/// All but its memory, which only a context of its own can tell.
GpuDescription describe(int index) {
  cudaDeviceProp properties;
  throwIfError(cudaGetDeviceProperties(&properties, index), "GPU " + std::to_string(index));
  return {.index = index,
          .name = properties.name,
          .major = properties.major,
          .minor = properties.minor,
          .code = DS_CUDA_CODE};
}

/// How many GPUs there are, and why none can be used.
int countGpus(std::string &unusable) {
  int driver = 0, runtime = 0, gpus = 0;
  (void)cudaDriverGetVersion(&driver);
  (void)cudaRuntimeGetVersion(&runtime);
  const cudaError_t error = cudaGetDeviceCount(&gpus);
  unusable = refuseDriver(driver, runtime, gpus, error == cudaSuccess ? "" : cudaGetErrorString(error));
  return error == cudaSuccess ? gpus : 0;
}

CudaInfo info() {
  CudaInfo info;
  (void)cudaDriverGetVersion(&info.driver);
  (void)cudaRuntimeGetVersion(&info.runtime);
  info.cublasLt = cublasLtGetVersion();
  info.cudnn = cudnnGetVersion();
  info.nccl = uint64_t(ncclVersion());
  const int gpus = countGpus(info.unusable);
  for (int index = 0; index < gpus; ++index) {
    GpuDescription &gpu = info.gpus.emplace_back(describe(index));
    size_t free = 0, total = 0;
    if (cudaSetDevice(index) == cudaSuccess && cudaMemGetInfo(&free, &total) == cudaSuccess) {
      gpu.freeBytes = free;
      gpu.totalBytes = total;
    }
  }
  return info;
}

/// Throws ds::Error where there is none.
GpuChoice gpuOf(const CudaRank &rank) {
  std::string unusable;
  const int gpus = countGpus(unusable);
  if (!unusable.empty())
    throw Error(unusable);
  return chooseGpu(rank.process, rank.index, rank.ranks, gpus);
}

std::unique_ptr<Device> makeDevice(const CudaRank &rank, std::optional<NvmePlace> nvme) {
  (void)kernels::cuda::isStrict(); // an odd value is said now, not where a library refuses
  const GpuChoice choice = gpuOf(rank);
  const GpuDescription gpu = describe(choice.gpu);
  if (const std::string refusal = refuseCapability(gpu); !refusal.empty())
    throw Error(refusal);
  return std::make_unique<CudaDevice>(rank, std::move(nvme), choice, gpu,
                                      noteOfTuning(rank.tunedOn, gpu, cublasLtGetVersion()),
                                      kernels::cuda::fallbacksByKernel);
}

MakeByteMover makeMovers(const std::vector<CudaRank> &ranks) {
  std::vector<int> gpus;
  for (const CudaRank &rank : ranks)
    gpus.push_back(gpuOf(rank).gpu);
  return makeCudaMovers(gpus);
}

std::unique_ptr<Transport> makeNccl(std::unique_ptr<ControlPlane> control, const CudaRank &rank) {
  // Loading a kernel at its first launch may wait for all that runs on the GPU, so for NCCL's kernels, which wait for
  // other ranks. Before the first call of CUDA, which reads it.
  (void)::setenv("CUDA_MODULE_LOADING", "EAGER", 0);
  const GpuChoice choice = gpuOf(rank);
  if (choice.shared)
    throw Error("rank " + std::to_string(rank.rank) + " shares GPU " + std::to_string(choice.gpu) +
                " with another of the " + std::to_string(rank.process.count) +
                " processes of this machine, and NCCL wants one for each; start as many as there are GPUs, or run all "
                "ranks in one process with -n");
  return makeNcclTransport(std::move(control), choice.gpu);
}

} // namespace
} // namespace ds::runtime

extern "C" const ds::runtime::CudaLibrary *dsCudaLibrary() {
  static constexpr ds::runtime::CudaLibrary library{.info = ds::runtime::info,
                                                    .makeDevice = ds::runtime::makeDevice,
                                                    .kernels = ds::kernels::cudaKernels,
                                                    .makeMovers = ds::runtime::makeMovers,
                                                    .makeNccl = ds::runtime::makeNccl,
                                                    .tune = ds::kernels::tunedCall};
  return &library;
}
