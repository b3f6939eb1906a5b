//===- CudaQueue.h - a queue that is a stream -----------------------------===//
#pragma once

#include "core/Status.h"
#include "kernels/KernelRegistry.h"
#include "runtime/device/HostThreadQueue.h"
#include "runtime/device/Queue.h"

#include <cstddef>
#include <cstdint>
#include <cuda_runtime_api.h>
#include <mutex>
#include <string>
#include <vector>

namespace ds::runtime {

class CudaDevice;

/// A thread of the host that takes submissions in order; its tasks enqueue on the queue's stream and return, so the
/// thread is ahead of the GPU by what waits and signals allow.
class CudaQueue final : public HostThreadQueue {
public:
  CudaQueue(CudaDevice &device, const QueueOptions &options);
  ~CudaQueue() override;

  void finish() noexcept override;
  void fill(void *target, uint8_t value, uint64_t bytes) noexcept override;
  Status copy(void *target, const void *source, uint64_t bytes) noexcept override;
  Status look(const std::byte *&bytes, uint64_t count) noexcept override;
  kernels::Parallel *parallel() noexcept override { return nullptr; }
  const kernels::Stream *stream() noexcept override { return &stream_; }

  cudaStream_t handle() const noexcept { return handle_; }

  // For a recording: the stream begins behind an event of another's, and another goes on behind all of this one's.
  cudaError_t joinRecording(cudaEvent_t begin) noexcept { return cudaStreamWaitEvent(handle_, begin, 0); }
  cudaError_t leaveRecording(cudaStream_t origin) noexcept;

private:
  void enter() noexcept override;
  std::unique_lock<std::mutex> turn() noexcept override;
  Status wait(Event &event, uint64_t value) noexcept override;
  Status signal(Event &event, uint64_t value) noexcept override;
  Status checked(cudaError_t error) const noexcept;
  void orFail(cudaError_t error) noexcept;

  CudaDevice &device_;
  const std::string place_; // "queue compute", for errors
  cudaStream_t handle_ = nullptr;
  cudaEvent_t left_ = nullptr; // end of the stream in a recording
  kernels::Stream stream_;
  std::vector<std::byte> seen_; // by look
};

} // namespace ds::runtime
