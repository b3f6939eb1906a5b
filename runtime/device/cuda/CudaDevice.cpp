//===- CudaDevice.cpp - a GPU as the device of a rank ---------------------===//
#include "runtime/device/cuda/CudaDevice.h"

#include "core/Environment.h"
#include "core/Error.h"
#include "core/RunningClock.h"
#include "core/Status.h"
#include "kernels/KernelRegistry.h"
#include "runtime/device/Arena.h"
#include "runtime/device/Queue.h"
#include "runtime/device/cuda/CudaArena.h"
#include "runtime/device/cuda/CudaHostQueue.h"
#include "runtime/device/cuda/CudaQueue.h"
#include "runtime/device/cuda/CudaStatus.h"
#include "runtime/device/cuda/GpuVerdicts.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cuda_runtime_api.h>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>

namespace ds::runtime {
namespace {

/// Device arenas of this process, by GPU, so that an error can tell them from other processes'.
constexpr int maxGpus = 64;
std::array<std::atomic<uint64_t>, maxGpus> arenaBytesOfGpu;

/// A CudaArena that this process's sum for its GPU knows of.
class CountedArena final : public Arena {
public:
  CountedArena(int gpu, uint64_t bytes, uint64_t alignment, std::atomic<uint64_t> &counter)
      : total_(arenaBytesOfGpu[size_t(gpu % maxGpus)]), arena_(CudaMemory::Device, bytes, alignment, counter) {
    total_ += bytes;
  }
  ~CountedArena() override { total_ -= arena_.bytes(); }
  std::byte *base() const noexcept override { return arena_.base(); }
  uint64_t bytes() const noexcept override { return arena_.bytes(); }
  uint64_t touchedBytes() const noexcept override { return arena_.touchedBytes(); }

private:
  std::atomic<uint64_t> &total_;
  const CudaArena arena_;
};

} // namespace

CudaDevice::CudaDevice(const CudaRank &rank, std::optional<NvmePlace> nvme, const GpuChoice &choice,
                       const GpuDescription &gpu, std::string note, std::map<std::string, int64_t> (*fallbacks)())
    : rank_(rank), shared_(choice.shared), graphs_(readSwitch("DS_CUDA_GRAPH", true)), gpu_(gpu),
      note_(std::move(note)), fallbacks_(fallbacks), nvme_(std::move(nvme)) {
  const std::string what = "rank " + std::to_string(rank.rank) + " on GPU " + std::to_string(gpu.index);
  throwIfError(cudaSetDevice(gpu.index), what);
  throwIfError(cudaStreamCreateWithFlags(&transfers_, cudaStreamNonBlocking), what);
  throwIfError(cudaEventCreateWithFlags(&begun_, cudaEventDisableTiming), what);
  throwIfError(cudaMalloc(reinterpret_cast<void **>(&step_), sizeof *step_), what);
  throwIfError(cudaHostAlloc(reinterpret_cast<void **>(&nextStep_), sizeof *nextStep_, cudaHostAllocPortable), what);
  throwIfError(cudaHostAlloc(reinterpret_cast<void **>(&refused_), sizeof *refused_,
                             cudaHostAllocPortable | cudaHostAllocMapped),
               what);
  throwIfError(cudaHostGetDevicePointer(reinterpret_cast<void **>(&refusedOnDevice_), refused_, 0), what);
  *refused_ = {};
}

CudaDevice::~CudaDevice() {
  enter();
  (void)cudaFreeHost(refused_);
  (void)cudaFreeHost(nextStep_);
  (void)cudaFree(step_);
  (void)cudaEventDestroy(begun_);
  (void)cudaStreamDestroy(transfers_);
}

std::unique_ptr<Arena> CudaDevice::createArena(const std::string &space, uint64_t bytes, uint64_t alignment) {
  enter();
  if (space == "host")
    return std::make_unique<CudaArena>(CudaMemory::Pinned, bytes, alignment, hostBytes_);
  if (space == "nvme")
    return nvme_.createArena(bytes, alignment);
  if (space != "device")
    throw Error("the cuda device has no space " + space + ": it has device, host and nvme");
  GpuDescription now = gpu_;
  size_t free = 0, total = 0;
  throwIfError(cudaMemGetInfo(&free, &total), "the free memory of GPU " + std::to_string(gpu_.index));
  now.freeBytes = free;
  now.totalBytes = total;
  const std::string refusal = refuseMemory({.rank = rank_.rank,
                                            .bytes = bytes,
                                            .reserve = rank_.reserve,
                                            .siblingsBytes = arenaBytesOfGpu[size_t(gpu_.index % maxGpus)]},
                                           now);
  if (!refusal.empty())
    throw Error(refusal);
  return std::make_unique<CountedArena>(gpu_.index, bytes, alignment, deviceBytes_);
}

std::unique_ptr<Arena> CudaDevice::createStaging(uint64_t bytes) {
  enter();
  return std::make_unique<CudaArena>(CudaMemory::Pinned, bytes, 1, stagingBytes_);
}

Event &CudaDevice::createEvent() {
  enter();
  return events_.emplace_back(guard_);
}

std::unique_ptr<Queue> CudaDevice::createQueue(const QueueOptions &options) {
  if (options.onHost)
    return std::make_unique<CudaHostQueue>(*this, options);
  return std::make_unique<CudaQueue>(*this, options);
}

uint64_t CudaDevice::allocatedBytes(const std::string &space) const noexcept {
  if (space == "device")
    return deviceBytes_;
  if (space == "host")
    return hostBytes_;
  return space == "nvme" ? nvme_.bytes() : 0;
}

std::string CudaDevice::note() const {
  const std::string file = nvme_.note();
  return note_ + (note_.empty() || file.empty() ? "" : "; ") + file;
}

cudaError_t CudaDevice::transfer(void *target, const void *source, uint64_t bytes) noexcept {
  if (bytes == 0)
    return cudaSuccess;
  enter();
  const cudaError_t error = cudaMemcpyAsync(target, source, bytes, cudaMemcpyDefault, transfers_);
  return error == cudaSuccess ? cudaStreamSynchronize(transfers_) : error;
}

void CudaDevice::write(void *target, std::span<const std::byte> source) noexcept {
  const Status status = nvme_.holds(target)
                            ? nvme_.copy(target, source.data(), source.size())
                            : checked(transfer(target, source.data(), source.size()), "writing to the GPU");
  if (!status.ok())
    fail(status);
}

void CudaDevice::read(std::span<std::byte> target, const void *source) noexcept {
  const Status status = nvme_.holds(source)
                            ? nvme_.copy(target.data(), source, target.size())
                            : checked(transfer(target.data(), source, target.size()), "reading from the GPU");
  if (!status.ok())
    fail(status);
}

Status CudaDevice::beginRun(uint64_t step) noexcept {
  *refused_ = {};
  *nextStep_ = step;
  return checked(transfer(step_, nextStep_, sizeof step), "the step counter");
}

std::optional<kernels::RefusedValue> CudaDevice::refused() const noexcept {
  return refused_->caller == 0 ? std::nullopt : std::optional(*refused_);
}

bool CudaDevice::records() const noexcept { return rank_.ranks == 1 && !shared_ && graphs_; }

Status CudaDevice::beginRecording() noexcept {
  enter();
  // Relaxed: other threads may call CUDA meanwhile, and the queues' threads themselves take part.
  cudaError_t error = cudaStreamBeginCapture(queues_[0]->handle(), cudaStreamCaptureModeRelaxed);
  if (error == cudaSuccess)
    error = cudaEventRecord(begun_, queues_[0]->handle());
  for (size_t i = 1; i < queues_.size() && error == cudaSuccess; ++i)
    error = queues_[i]->joinRecording(begun_);
  recording_ = error == cudaSuccess;
  cudaGraph_t none = nullptr;
  if (error != cudaSuccess && cudaStreamEndCapture(queues_[0]->handle(), &none) == cudaSuccess)
    (void)cudaGraphDestroy(none);
  return checked(error, "the beginning of a CUDA graph");
}

std::unique_lock<std::mutex> CudaDevice::turnOfRecording() noexcept {
  return recording_ ? std::unique_lock(recordingMutex_) : std::unique_lock<std::mutex>();
}

cudaError_t CudaDevice::awaitStream(cudaStream_t stream, std::chrono::milliseconds patience) const noexcept {
  using Time = RunningClock::Time;
  constexpr std::chrono::microseconds awake{200}, asleep{20};
  constexpr std::chrono::seconds timeout{10};
  RunningClock clock;
  const Time begin = clock.now();
  Time failed = Time::max();
  while (true) {
    const cudaError_t error = cudaStreamQuery(stream);
    if (error != cudaErrorNotReady)
      return error;
    (void)cudaGetLastError(); // else it would be the next launch's
    const Time now = clock.now();
    if (guard_.failed() && failed == Time::max())
      failed = now;
    if (now - begin > patience || (failed != Time::max() && now - failed > timeout))
      return cudaErrorTimeout;
    if (now - begin > awake)
      std::this_thread::sleep_for(asleep);
  }
}

void CudaDevice::fail(const Status &status) noexcept {
  if (recording_) {           // ends the recording alone, which other ranks need not know
    (void)cudaGetLastError(); // of a library, say, which tells a code of its own; else it would be the next launch's
    (void)guard_.report(status);
  } else if (!guard_.failed())
    (void)guard_.report(agree_ ? agree_(status) : status);
}

Status CudaDevice::checked(cudaError_t error, const char *place) const noexcept {
  if (error == cudaSuccess)
    return Status::success();
  (void)cudaGetLastError(); // else it would be the next launch's
  return cudaFailure(error, rank_.rank, place);
}

} // namespace ds::runtime
