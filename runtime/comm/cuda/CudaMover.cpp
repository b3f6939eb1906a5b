//===- CudaMover.cpp - bytes move on streams of GPUs ----------------------===//
#include "runtime/comm/cuda/CudaMover.h"

#include "core/DType.h"
#include "core/Error.h"
#include "core/Status.h"
#include "runtime/comm/cuda/DeviceSum.h"
#include "runtime/comm/inprocess/ByteMover.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <cuda_runtime_api.h>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

namespace ds::runtime {
namespace {

/// Makes a GPU the current one of this thread for a while.
class OnGpu {
public:
  explicit OnGpu(int gpu) {
    if (cudaGetDevice(&before_) == cudaSuccess && before_ != gpu)
      (void)cudaSetDevice(gpu);
  }
  ~OnGpu() { (void)cudaSetDevice(before_); }
  OnGpu(const OnGpu &) = delete;
  OnGpu &operator=(const OnGpu &) = delete;

private:
  int before_ = 0;
};

/// Two events, recorded in turn: a peer that is one mark behind still waits for the right one, since what it waits for
/// is the record that is the last when it says so.
class CudaMover final : public ByteMover {
public:
  CudaMover(uint32_t rank, int gpu) : rank_(rank) {
    const OnGpu here(gpu);
    for (cudaEvent_t &event : events_)
      if (const cudaError_t error = cudaEventCreateWithFlags(&event, cudaEventDisableTiming); error != cudaSuccess)
        throw Error("rank " + std::to_string(rank) + ": CUDA makes no event on GPU " + std::to_string(gpu) + ": " +
                    cudaGetErrorString(error));
  }

  ~CudaMover() override {
    for (cudaEvent_t event : events_)
      (void)cudaEventDestroy(event);
  }

  Status mark(uint64_t mark, void *stream) noexcept override {
    return check(cudaEventRecord(events_[mark % 2], cudaStream_t(stream)), "record an event");
  }

  Status follow(const ByteMover &peer, uint64_t mark, void *stream) noexcept override {
    const cudaEvent_t event = static_cast<const CudaMover &>(peer).events_[mark % 2];
    return check(cudaStreamWaitEvent(cudaStream_t(stream), event, 0), "wait for another rank's event");
  }

  Status copy(std::byte *target, const std::byte *source, uint64_t bytes, void *stream) noexcept override {
    if (target == source || bytes == 0)
      return Status::success();
    return check(cudaMemcpyAsync(target, source, bytes, cudaMemcpyDefault, cudaStream_t(stream)), "copy bytes");
  }

  Status sum(DType dtype, std::span<const std::byte *const> addends, std::byte *target, uint64_t count, bool accumulate,
             void *stream) noexcept override {
    return check(sumOnDevice(dtype, addends, target, count, accumulate, cudaStream_t(stream)), "sum over ranks");
  }

private:
  Status check(cudaError_t error, const char *what) const noexcept {
    if (error == cudaSuccess)
      return Status::success();
    return Status::failure("rank %u could not %s: CUDA says %s", rank_, what, cudaGetErrorString(error));
  }

  const uint32_t rank_;
  std::array<cudaEvent_t, 2> events_{};
};

/// Lets kernels of `gpu` read and write `other`'s memory.
void enablePeer(int gpu, int other) {
  int can = 0;
  if (cudaDeviceCanAccessPeer(&can, gpu, other) != cudaSuccess || can == 0)
    throw Error("GPUs " + std::to_string(gpu) + " and " + std::to_string(other) +
                    " cannot read each other's memory, which ranks of one process need; start a process for each rank",
                "mpirun -n RANKS ds-run PLAN ...");
  const OnGpu here(gpu);
  const cudaError_t error = cudaDeviceEnablePeerAccess(other, 0);
  if (error == cudaErrorPeerAccessAlreadyEnabled)
    (void)cudaGetLastError(); // it is no error of whoever asks next
  else if (error != cudaSuccess)
    throw Error("GPU " + std::to_string(gpu) + " gets no access to the memory of GPU " + std::to_string(other) +
                ": CUDA says " + cudaGetErrorString(error));
}

} // namespace

MakeByteMover makeCudaMovers(const std::vector<int> &gpuOfRank) {
  if (gpuOfRank.size() > maxAddends)
    throw Error(std::to_string(gpuOfRank.size()) + " ranks of one process are more than the " +
                std::to_string(maxAddends) + " that GPUs of one process sum over; start a process for each rank");
  const std::set<int> gpus(gpuOfRank.begin(), gpuOfRank.end());
  for (const int gpu : gpus)
    for (const int other : gpus)
      if (gpu != other)
        enablePeer(gpu, other);
  return [gpuOfRank](uint32_t rank) { return std::make_unique<CudaMover>(rank, gpuOfRank.at(rank)); };
}

} // namespace ds::runtime
