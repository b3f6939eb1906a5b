//===- CudaHostQueue.h - a queue beside a GPU's streams ---------------------===//
#pragma once

#include "core/Status.h"
#include "runtime/device/Queue.h"
#include "runtime/device/cpu/ProcessorQueue.h"

#include <cstdint>
#include <cuda_runtime_api.h>
#include <string>

namespace ds::runtime {

class CudaDevice;

/// The host's processors do its work, in pinned memory and the rank's file. Its thread waits until a stream has come to
/// what it waits for, so whatever it signals is done already, and no stream waits for anything it has still to do.
class CudaHostQueue final : public ProcessorQueue {
public:
  CudaHostQueue(CudaDevice &device, const QueueOptions &options);
  ~CudaHostQueue() override;

private:
  void enter() noexcept override;
  Status wait(Event &event, uint64_t value) noexcept override;
  Status signal(Event &event, uint64_t value) noexcept override;

  CudaDevice &device_;
  const std::string place_; // "queue host_compute", for errors
  /// Is given waits alone, and keeps what each waits for: an event of a ring may be recorded anew meanwhile.
  cudaStream_t waits_ = nullptr;
};

} // namespace ds::runtime
