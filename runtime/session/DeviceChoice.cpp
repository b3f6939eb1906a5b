//===- DeviceChoice.cpp - which devices a run's ranks get -----------------===//
#include "runtime/session/DeviceChoice.h"

#include "core/Error.h"
#include "kernels/KernelRegistry.h"
#include "runtime/device/cpu/CpuDevice.h"
#include "runtime/device/cuda/GpuVerdicts.h"
#include "runtime/device/null/NullDevice.h"
#include "runtime/plan/plan.pb.h"
#include "runtime/plugins/CudaLibrary.h"
#include "runtime/plugins/LoadCuda.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace ds::runtime {
namespace {

std::optional<std::string> environment(const char *name) {
  const char *text = std::getenv(name);
  return text != nullptr ? std::optional<std::string>(text) : std::nullopt;
}

} // namespace

CudaRank cudaRank(const plan::proto::Plan &plan, uint32_t rank, const std::vector<uint32_t> &localRanks) {
  return {.rank = rank,
          .index = uint32_t(std::find(localRanks.begin(), localRanks.end(), rank) - localRanks.begin()),
          .ranks = uint32_t(localRanks.size()),
          .process = localProcess(environment),
          .reserve = plan.machine().reserve(),
          .tunedOn = {.gpu = plan.tuning().gpu(), .cublasLt = plan.tuning().cublaslt()}};
}

int threadsFor(const plan::proto::Plan &plan, const std::vector<uint32_t> &localRanks) {
  const auto computesOnHost = [](const plan::proto::Role &role) {
    return std::ranges::any_of(role.queues(),
                               [](const auto &queue) { return queue.kind() == plan::proto::Queue::HOST; });
  };
  if (plan.machine().device() != "cuda" || std::ranges::none_of(plan.roles(), computesOnHost))
    return int(plan.machine().threads());
  const CudaRank rank = cudaRank(plan, localRanks.front(), localRanks);
  return std::max(1, int(std::thread::hardware_concurrency() / (rank.ranks * rank.process.count)));
}

std::optional<NvmePlace> nvmePlace(const plan::proto::Plan &plan, const NvmeWish &wish, uint32_t rank) {
  if (!plan.has_nvme())
    return std::nullopt;
  return NvmePlace{.folder = wish.folder.empty() ? plan.nvme().folder() : wish.folder,
                   .rank = rank,
                   .options = {.blockBytes = plan.nvme().block_bytes(),
                               .queueDepth = int(plan.nvme().queue_depth()),
                               .checksums = wish.checksums}};
}

DeviceChoice chooseDevice(const plan::proto::Plan &plan, const std::string &wanted, const NvmeWish &nvme,
                          const kernels::KernelRegistry &cpuKernels, const std::vector<uint32_t> &localRanks) {
  const std::string &planned = plan.machine().device(), &device = wanted.empty() ? planned : wanted;
  if (device == "null")
    return {[](uint32_t) { return std::make_unique<NullDevice>(); }, cpuKernels};
  if (device != planned)
    throw Error("the plan was compiled for device " + planned + ", so it does not run on " + device +
                "; leave --device out to run it on " + planned + ", or compile it for a machine with device " + device);
  if (device == "cuda") {
    const CudaLibrary &cuda = loadCuda();
    return {[&cuda, &plan, nvme, localRanks](uint32_t rank) {
              return cuda.makeDevice(cudaRank(plan, rank, localRanks), nvmePlace(plan, nvme, rank));
            },
            cuda.kernels(), &cuda};
  }
  if (device != "cpu")
    throw Error("this ds-run knows no device " + device + "; compile the plan for a machine with device cpu or cuda");
  return {[&plan, nvme](uint32_t rank) { return std::make_unique<CpuDevice>(nvmePlace(plan, nvme, rank)); },
          cpuKernels};
}

} // namespace ds::runtime
