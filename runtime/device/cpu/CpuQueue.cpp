//===- CpuQueue.cpp - a queue that is a thread ----------------------------===//
#include "runtime/device/cpu/CpuQueue.h"

#include "core/Status.h"
#include "runtime/device/Event.h"
#include "runtime/device/HostThreadQueue.h"
#include "runtime/device/Queue.h"
#include "runtime/device/cpu/CpuDevice.h"
#include "runtime/device/cpu/CpuEvent.h"
#include "runtime/device/cpu/ThreadPool.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace ds::runtime {

CpuQueue::CpuQueue(CpuDevice &device, const QueueOptions &options)
    : HostThreadQueue(device, device.guard(), options), device_(device) {
  if (options.workers > 1)
    parallel_ = std::make_unique<ThreadPool>(options.workers);
  else
    parallel_ = std::make_unique<OneWorker>();
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

void CpuQueue::fill(void *target, uint8_t value, uint64_t bytes) noexcept { device_.fill(target, value, bytes); }

Status CpuQueue::copy(void *target, const void *source, uint64_t bytes) noexcept {
  return device_.copy(target, source, bytes);
}

Status CpuQueue::look(const std::byte *&bytes, uint64_t count) noexcept {
  if (!device_.isInFile(bytes))
    return Status::success();
  seen_.resize(std::max<size_t>(seen_.size(), count));
  const Status status = device_.copy(seen_.data(), bytes, count);
  bytes = seen_.data();
  return status;
}

} // namespace ds::runtime
