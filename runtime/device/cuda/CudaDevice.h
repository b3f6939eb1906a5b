//===- CudaDevice.h - a GPU as the device of a rank -----------------------===//
#pragma once

#include "kernels/KernelRegistry.h"
#include "runtime/device/Device.h"
#include "runtime/device/RunGuard.h"
#include "runtime/device/cpu/NvmeSpace.h"
#include "runtime/device/cuda/CudaEvent.h"
#include "runtime/device/cuda/GpuVerdicts.h"

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cuda_runtime_api.h>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ds::runtime {

class CudaQueue;

/// Arenas are one cudaMalloc ("device"), pinned memory of the host ("host") and a file ("nvme"); queues are streams,
/// and threads of the host beside them; events are rings of CUDA's. Ranks may share a GPU, each with a device of its
/// own.
class CudaDevice final : public Device {
public:
  /// `gpu`: what the driver says of the one at choice.gpu. Throws ds::Error.
  CudaDevice(const CudaRank &rank, std::optional<NvmePlace> nvme, const GpuChoice &choice, const GpuDescription &gpu,
             std::string note, std::map<std::string, int64_t> (*fallbacks)());
  ~CudaDevice() override;
  CudaDevice(const CudaDevice &) = delete;
  CudaDevice &operator=(const CudaDevice &) = delete;

  std::string_view name() const noexcept override { return "cuda"; }
  bool executes() const noexcept override { return true; }
  void enter() noexcept override { (void)cudaSetDevice(gpu_.index); }
  std::unique_ptr<Arena> createArena(const std::string &space, uint64_t bytes, uint64_t alignment) override;
  std::unique_ptr<Arena> createStaging(uint64_t bytes) override;
  bool isMainMemory(std::string_view space) const noexcept override { return space == "host"; }
  Event &createEvent() override;
  std::unique_ptr<Queue> createQueue(const QueueOptions &options) override;
  uint64_t allocatedBytes(const std::string &space) const noexcept override;
  std::string note() const override;
  std::optional<std::map<std::string, int64_t>> fallbacks() const override { return fallbacks_(); }
  void write(void *target, std::span<const std::byte> source) noexcept override;
  void read(std::span<std::byte> target, const void *source) noexcept override;

  Status beginRun(uint64_t step) noexcept override;
  std::optional<kernels::RefusedValue> refused() const noexcept override;
  /// Not where ranks share the process or the GPU: they meet on the host, which a graph does not repeat. Nor where
  /// DS_CUDA_GRAPH is 0.
  bool records() const noexcept override;
  Status beginRecording() noexcept override;
  Status endRecording(std::unique_ptr<RecordedRun> &run) noexcept override;

  Status failure() const noexcept override { return guard_.get(); }
  void fail(const Status &status) noexcept override;
  void onFailure(Agree agree) override { agree_ = std::move(agree); }

  // For its queues.
  RunGuard &guard() noexcept { return guard_; }
  NvmeSpace &nvme() noexcept { return nvme_; }
  uint32_t rank() const noexcept { return rank_.rank; }
  const uint64_t *deviceStep() const noexcept { return step_; }
  kernels::RefusedValue *refusedOnDevice() const noexcept { return refusedOnDevice_; }
  void addQueue(CudaQueue &queue) { queues_.push_back(&queue); }
  void removeQueue(CudaQueue &queue) { std::erase(queues_, &queue); }
  bool isRecording() const noexcept { return recording_; }
  /// Holds the recording, or nothing where there is none.
  std::unique_lock<std::mutex> turnOfRecording() noexcept;
  /// Waits for all that the stream was given, for `patience` at most; after a failure of the device no longer than a
  /// while, since what the others do not send never comes.
  cudaError_t awaitStream(cudaStream_t stream, std::chrono::milliseconds patience) const noexcept;

private:
  Status checked(cudaError_t error, const char *place) const noexcept;
  cudaError_t transfer(void *target, const void *source, uint64_t bytes) noexcept;

  const CudaRank rank_;
  const bool shared_, graphs_;
  const GpuDescription gpu_;
  const std::string note_;
  std::map<std::string, int64_t> (*const fallbacks_)();
  RunGuard guard_; // before events, which wait by it
  Agree agree_;
  std::atomic<uint64_t> deviceBytes_ = 0, hostBytes_ = 0, stagingBytes_ = 0;
  NvmeSpace nvme_;
  std::deque<CudaEvent> events_;     // never move: queues point at them
  std::vector<CudaQueue *> queues_;  // those with a stream
  cudaStream_t transfers_ = nullptr; // of the host's own reads and writes
  cudaEvent_t begun_ = nullptr;      // beginning of a recording
  std::atomic<bool> recording_ = false;
  std::mutex recordingMutex_;
  uint64_t *step_ = nullptr;                         // on the GPU
  uint64_t *nextStep_ = nullptr;                     // pinned
  kernels::RefusedValue *refused_ = nullptr;         // pinned, and
  kernels::RefusedValue *refusedOnDevice_ = nullptr; // as the GPU sees it
};

} // namespace ds::runtime
