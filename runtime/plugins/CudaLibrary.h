//===- CudaLibrary.h - what libds-cuda.so offers ds-run -------------------===//
#pragma once

#include "kernels/KernelRegistry.h"
#include "kernels/TunedCall.h"
#include "runtime/comm/ControlPlane.h"
#include "runtime/comm/Transport.h"
#include "runtime/comm/inprocess/ByteMover.h"
#include "runtime/device/Device.h"
#include "runtime/device/cpu/NvmeArena.h"
#include "runtime/device/cuda/GpuVerdicts.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace ds::runtime {

/// What `ds-run info` prints. Versions are the libraries' own numbers, 0 where one does not say.
struct CudaInfo {
  std::string unusable; ///< why no GPU can be used; empty: some can
  int driver = 0, runtime = 0;
  uint64_t cublasLt = 0, cudnn = 0, nccl = 0;
  std::vector<GpuDescription> gpus;
};

/// The one thing that libds-cuda.so exports, by the function `dsCudaLibrary`. Library and ds-run are built together:
/// `form` changes with this struct, and with every class that crosses it.
struct CudaLibrary {
  static constexpr uint32_t currentForm = 4;
  uint32_t form = currentForm;
  CudaInfo (*info)() = nullptr;
  /// `nvme`: of the rank's arena in a file, if it has one. Throws ds::Error where the machine has no GPU that this rank
  /// can use.
  std::unique_ptr<Device> (*makeDevice)(const CudaRank &rank, std::optional<NvmePlace> nvme) = nullptr;
  const kernels::KernelRegistry &(*kernels)() = nullptr;
  /// How ranks that are threads of this process move bytes; `ranks`: all of the run. Throws ds::Error.
  MakeByteMover (*makeMovers)(const std::vector<CudaRank> &ranks) = nullptr;
  /// For a rank that is a process, beside what already connects it with the others. Throws ds::Error.
  std::unique_ptr<Transport> (*makeNccl)(std::unique_ptr<ControlPlane> control, const CudaRank &rank) = nullptr;
  /// On the first GPU. Throws ds::Error.
  kernels::TunedCall (*tune)(const kernels::Invocation &call) = nullptr;
};

} // namespace ds::runtime
