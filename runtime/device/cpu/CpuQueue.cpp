//===- CpuQueue.cpp - a queue that is a thread ----------------------------===//
#include "runtime/device/cpu/CpuQueue.h"

#include "core/Status.h"
#include "runtime/device/Event.h"
#include "runtime/device/Queue.h"
#include "runtime/device/cpu/CpuDevice.h"
#include "runtime/device/cpu/CpuEvent.h"
#include "runtime/device/cpu/ProcessorQueue.h"

#include <cstdint>

namespace ds::runtime {

CpuQueue::CpuQueue(CpuDevice &device, const QueueOptions &options)
    : ProcessorQueue(device, device.guard(), device.nvme(), options) {
  start();
}

Status CpuQueue::wait(Event &event, uint64_t value) noexcept {
  (void)static_cast<CpuEvent &>(event).counter.wait(value);
  return Status::success();
}

Status CpuQueue::signal(Event &event, uint64_t value) noexcept {
  static_cast<CpuEvent &>(event).counter.raise(value);
  return Status::success();
}

} // namespace ds::runtime
