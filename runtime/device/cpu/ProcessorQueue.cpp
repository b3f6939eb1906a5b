//===- ProcessorQueue.cpp - a queue whose work the host's processors do -----===//
#include "runtime/device/cpu/ProcessorQueue.h"

#include "core/Status.h"
#include "runtime/device/Device.h"
#include "runtime/device/HostThreadQueue.h"
#include "runtime/device/Queue.h"
#include "runtime/device/RunGuard.h"
#include "runtime/device/cpu/NvmeSpace.h"
#include "runtime/device/cpu/ThreadPool.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace ds::runtime {

ProcessorQueue::ProcessorQueue(Device &device, RunGuard &guard, NvmeSpace &nvme, const QueueOptions &options)
    : HostThreadQueue(device, guard, options), device_(device), nvme_(nvme) {
  if (options.workers > 1)
    parallel_ = std::make_unique<ThreadPool>(options.workers);
  else
    parallel_ = std::make_unique<OneWorker>();
}

void ProcessorQueue::fill(void *target, uint8_t value, uint64_t bytes) noexcept {
  if (const Status status = nvme_.fill(target, value, bytes); !status.ok())
    device_.fail(status);
}

Status ProcessorQueue::look(const std::byte *&bytes, uint64_t count) noexcept {
  if (!nvme_.holds(bytes))
    return Status::success();
  seen_.resize(std::max<size_t>(seen_.size(), count));
  const Status status = nvme_.copy(seen_.data(), bytes, count);
  bytes = seen_.data();
  return status;
}

} // namespace ds::runtime
