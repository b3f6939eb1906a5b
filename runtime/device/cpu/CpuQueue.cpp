//===- CpuQueue.cpp - a queue that is a thread ----------------------------===//
#include "runtime/device/cpu/CpuQueue.h"

#include "runtime/core/Status.h"
#include "runtime/device/Event.h"
#include "runtime/device/Queue.h"
#include "runtime/device/Task.h"
#include "runtime/device/cpu/CpuDevice.h"
#include "runtime/device/cpu/CpuEvent.h"
#include "runtime/device/cpu/ThreadPool.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <pthread.h>

namespace ds::runtime {

CpuQueue::CpuQueue(CpuDevice &device, const QueueOptions &options)
    : device_(device), ring_(std::max<size_t>(1, options.depth)) {
  if (options.workers > 1)
    parallel_ = std::make_unique<ThreadPool>(options.workers);
  else
    parallel_ = std::make_unique<OneWorker>();
  thread_ = std::thread([this] { serve(); });
  ::pthread_setname_np(thread_.native_handle(), options.name.substr(0, 15).c_str());
}

CpuQueue::~CpuQueue() {
  stop_ = true;
  work_.notify();
  thread_.join();
}

void CpuQueue::submit(const CommandList &commands, const Call &call) noexcept {
  const uint64_t place = submitted_;
  if (place - done_ >= ring_.size())
    idle_.wait([&] { return place - done_ < ring_.size(); });
  ring_[place % ring_.size()] = {&commands, call};
  submitted_ = place + 1;
  work_.notify();
}

void CpuQueue::finish() noexcept {
  const uint64_t all = submitted_;
  idle_.wait([&] { return done_ >= all; });
}

void CpuQueue::serve() noexcept {
  while (true) {
    work_.wait([&] { return stop_ || submitted_ != done_; });
    if (submitted_ == done_)
      return; // stopped, and nothing left
    carryOut(ring_[done_ % ring_.size()]);
    done_ += 1;
    idle_.notify();
  }
}

void CpuQueue::carryOut(const Submission &submission) noexcept {
  const uint64_t reached = submission.call.microbatch + 1;
  for (const ListedCommand &command : *submission.commands) {
    for (const EventWait &wait : command.waits)
      if (reached > wait.delay)
        static_cast<CpuEvent *>(wait.event)->wait(reached - wait.delay);
    if (device_.failed())
      return;
    const Status status = command.task->run(submission.call, *this);
    if (!status.ok()) {
      device_.fail(status);
      return;
    }
    for (Event *event : command.signals)
      static_cast<CpuEvent *>(event)->raise(reached);
  }
}

void CpuQueue::fill(void *target, uint8_t value, uint64_t bytes) noexcept {
  if (bytes > 0)
    std::memset(target, value, bytes);
}

void CpuQueue::copy(void *target, const void *source, uint64_t bytes) noexcept {
  if (bytes > 0)
    std::memmove(target, source, bytes);
}

} // namespace ds::runtime
