//===- DeviceChoice.h - which devices a run's ranks get -------------------===//
#pragma once

#include "kernels/KernelRegistry.h"
#include "runtime/device/cpu/CpuDevice.h"
#include "runtime/plan/plan.pb.h"
#include "runtime/plugins/CudaLibrary.h"
#include "runtime/session/LocalRanks.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace ds::runtime {

/// What the plan's commands run on.
struct DeviceChoice {
  LocalRanks::MakeDevice make;
  const kernels::KernelRegistry &kernels;
  const CudaLibrary *cuda = nullptr; ///< where ranks are on GPUs
};

/// A rank of this process, of those that stand here, as one that is to have a GPU.
CudaRank cudaRank(const plan::proto::Plan &plan, uint32_t rank, const std::vector<uint32_t> &localRanks);

/// Threads of a rank where the user says none: as many as the plan was compiled for. Nothing is compiled for those of
/// queues beside a GPU; they are the rank's share of the processors, and change no bit.
int threadsFor(const plan::proto::Plan &plan, const std::vector<uint32_t> &localRanks);

/// What a run asks of arenas in space nvme.
struct NvmeWish {
  std::string folder;     ///< empty: the plan's
  bool checksums = false; ///< of each page, compared when it is read
};

/// Where a rank keeps its arena of space nvme; nothing where the plan has none.
std::optional<NvmePlace> nvmePlace(const plan::proto::Plan &plan, const NvmeWish &wish, uint32_t rank);

/// The device that the plan was compiled for, or the null device, which walks any plan. `wanted`: "cpu", "cuda",
/// "null"; empty: the plan's. Throws ds::Error where the two do not fit or a library is missing; a machine without a
/// GPU is found out when the device is made.
DeviceChoice chooseDevice(const plan::proto::Plan &plan, const std::string &wanted, const NvmeWish &nvme,
                          const kernels::KernelRegistry &cpuKernels, const std::vector<uint32_t> &localRanks);

} // namespace ds::runtime
