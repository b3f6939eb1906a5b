//===- CudaEvent.h - a counter that streams raise and wait for ------------===//
#pragma once

#include "core/Status.h"
#include "runtime/device/Counter.h"
#include "runtime/device/Event.h"
#include "runtime/device/RunGuard.h"
#include "runtime/device/cuda/EventRing.h"

#include <array>
#include <cstdint>
#include <cuda_runtime_api.h>
#include <mutex>

namespace ds::runtime {

/// Its value is how far signals have been *recorded* on streams, not how far they have been reached: what waits for a
/// value waits on the host until it is recorded, then has its stream wait. What the host raises itself is reached.
class CudaEvent final : public Event {
public:
  /// Throws ds::Error.
  explicit CudaEvent(RunGuard &guard);
  ~CudaEvent() override;
  CudaEvent(const CudaEvent &) = delete;
  CudaEvent &operator=(const CudaEvent &) = delete;

  uint64_t value() const noexcept override { return recorded_.value(); }
  void reset() noexcept override;

  /// Raises it to `value` when the stream gets here.
  cudaError_t record(uint64_t value, cudaStream_t stream) noexcept;
  /// Raises it to `value` now.
  void raise(uint64_t value) noexcept;
  /// Waits on the host until some stream was told to raise it so far. Returns false when the run has failed.
  [[nodiscard]] bool awaitRecord(uint64_t value) noexcept { return recorded_.wait(value); }
  /// After awaitRecord: what the stream is given next waits until the value is reached.
  cudaError_t holdBack(uint64_t value, cudaStream_t stream) noexcept;

private:
  std::mutex mutex_; // of ring_ and of recording against waiting
  EventRing ring_;
  std::array<cudaEvent_t, EventRing::places> events_{};
  std::array<bool, EventRing::places> isReached_{}; // by place: the host has raised it, so there is nothing to wait for
  Counter recorded_;
};

} // namespace ds::runtime
