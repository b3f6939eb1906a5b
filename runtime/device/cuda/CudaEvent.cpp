//===- CudaEvent.cpp - a counter that streams raise and wait for ----------===//
#include "runtime/device/cuda/CudaEvent.h"

#include "runtime/device/cuda/CudaStatus.h"

#include <cstddef>
#include <cstdint>
#include <cuda_runtime_api.h>
#include <mutex>
#include <optional>

namespace ds::runtime {

CudaEvent::CudaEvent(RunGuard &guard) : recorded_(guard) {
  for (cudaEvent_t &event : events_)
    throwIfError(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "an event");
}

CudaEvent::~CudaEvent() {
  for (cudaEvent_t event : events_)
    (void)cudaEventDestroy(event);
}

void CudaEvent::reset() noexcept {
  const std::lock_guard<std::mutex> lock(mutex_);
  ring_.clear();
  recorded_.reset();
}

cudaError_t CudaEvent::record(uint64_t value, cudaStream_t stream) noexcept {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (const std::optional<size_t> place = ring_.record(value)) {
      isReached_[*place] = false;
      if (const cudaError_t error = cudaEventRecord(events_[*place], stream); error != cudaSuccess)
        return error;
    }
  }
  recorded_.raise(value);
  return cudaSuccess;
}

void CudaEvent::raise(uint64_t value) noexcept {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (const std::optional<size_t> place = ring_.record(value))
      isReached_[*place] = true;
  }
  recorded_.raise(value);
}

cudaError_t CudaEvent::holdBack(uint64_t value, cudaStream_t stream) noexcept {
  const std::lock_guard<std::mutex> lock(mutex_);
  const std::optional<size_t> place = ring_.find(value);
  return place && !isReached_[*place] ? cudaStreamWaitEvent(stream, events_[*place], 0)
                                      : cudaSuccess; // no place: nothing was recorded since it was reset
}

} // namespace ds::runtime
