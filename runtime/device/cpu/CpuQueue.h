//===- CpuQueue.h - a queue that is a thread ------------------------------===//
#pragma once

#include "core/Status.h"
#include "runtime/device/Queue.h"
#include "runtime/device/cpu/ProcessorQueue.h"

#include <cstdint>

namespace ds::runtime {

class CpuDevice;

/// Waits for counters, and raises them.
class CpuQueue final : public ProcessorQueue {
public:
  CpuQueue(CpuDevice &device, const QueueOptions &options);
  ~CpuQueue() override { stop(); }

private:
  Status wait(Event &event, uint64_t value) noexcept override;
  Status signal(Event &event, uint64_t value) noexcept override;
};

} // namespace ds::runtime
