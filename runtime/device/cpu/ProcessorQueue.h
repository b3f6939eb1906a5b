//===- ProcessorQueue.h - a queue whose work the host's processors do -------===//
#pragma once

#include "core/Status.h"
#include "runtime/device/HostThreadQueue.h"
#include "runtime/device/Queue.h"
#include "runtime/device/cpu/NvmeSpace.h"
#include "runtime/device/cpu/ThreadPool.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace ds::runtime {

/// One thread that carries out submissions in order; its kernels spread over the queue's own pool. A task is done when
/// its run() has returned. It touches main memory and the rank's file. Events are the derived queue's.
class ProcessorQueue : public HostThreadQueue {
public:
  void fill(void *target, uint8_t value, uint64_t bytes) noexcept override;
  Status copy(void *target, const void *source, uint64_t bytes) noexcept override {
    return nvme_.copy(target, source, bytes);
  }
  Status look(const std::byte *&bytes, uint64_t count) noexcept override;
  kernels::Parallel *parallel() noexcept override { return parallel_.get(); }

protected:
  /// `nvme` is the device's.
  ProcessorQueue(Device &device, RunGuard &guard, NvmeSpace &nvme, const QueueOptions &options);

private:
  Device &device_;
  NvmeSpace &nvme_;
  std::unique_ptr<kernels::Parallel> parallel_;
  std::vector<std::byte> seen_; // what `look` brought from a file
};

} // namespace ds::runtime
