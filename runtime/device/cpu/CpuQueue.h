//===- CpuQueue.h - a queue that is a thread ------------------------------===//
#pragma once

#include "core/Status.h"
#include "runtime/device/HostThreadQueue.h"
#include "runtime/device/Queue.h"
#include "runtime/device/cpu/ThreadPool.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace ds::runtime {

class CpuDevice;

/// One thread that carries out submissions in order; its kernels spread over the queue's own pool. A task is done when
/// its run() has returned.
class CpuQueue final : public HostThreadQueue {
public:
  CpuQueue(CpuDevice &device, const QueueOptions &options);
  ~CpuQueue() override { stop(); }

  void fill(void *target, uint8_t value, uint64_t bytes) noexcept override;
  Status copy(void *target, const void *source, uint64_t bytes) noexcept override;
  Status look(const std::byte *&bytes, uint64_t count) noexcept override;
  kernels::Parallel *parallel() noexcept override { return parallel_.get(); }

private:
  Status wait(Event &event, uint64_t value) noexcept override;
  Status signal(Event &event, uint64_t value) noexcept override;

  CpuDevice &device_;
  std::unique_ptr<kernels::Parallel> parallel_;
  std::vector<std::byte> seen_; // what `look` brought from a file
};

} // namespace ds::runtime
