//===- HostThreadQueue.cpp - a queue with a thread on the host ------------===//
#include "runtime/device/HostThreadQueue.h"

#include "core/Status.h"
#include "runtime/device/Device.h"
#include "runtime/device/Queue.h"
#include "runtime/device/RunGuard.h"
#include "runtime/device/Task.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <pthread.h>
#include <thread>
#include <utility>

namespace ds::runtime {

HostThreadQueue::HostThreadQueue(Device &device, RunGuard &guard, const QueueOptions &options)
    : device_(device), guard_(guard), rank_(options.rank), name_(options.name), patience_(options.patience),
      ring_(std::max<size_t>(1, options.depth)) {}

void HostThreadQueue::start() {
  thread_ = std::thread([this] { serve(); });
  ::pthread_setname_np(thread_.native_handle(), name_.substr(0, 15).c_str());
}

void HostThreadQueue::stop() noexcept {
  stop_ = true;
  work_.notify();
  thread_.join();
}

void HostThreadQueue::submit(const CommandList &commands, const Call &call) noexcept {
  const uint64_t place = submitted_;
  if (place - done_ >= ring_.size())
    idle_.wait([&] { return place - done_ < ring_.size(); });
  ring_[place % ring_.size()] = {&commands, call};
  submitted_ = place + 1;
  work_.notify();
}

void HostThreadQueue::finish() noexcept {
  const uint64_t all = submitted_;
  uint64_t seen = guard_.movements();
  while (!idle_.waitFor([&] { return done_ >= all; }, patience_))
    if (const uint64_t before = std::exchange(seen, guard_.movements()); before == seen && !guard_.failed())
      device_.fail(standstill());
}

Status HostThreadQueue::standstill() const noexcept {
  return Status::failure("rank %u: nothing has moved for %.3g s; queue %s %s %s", rank_,
                         double(patience_.count()) / 1000, name_.c_str(),
                         inside_ ? "has not come out of" : "waits for an event that lets it begin", at_.load());
}

void HostThreadQueue::serve() noexcept {
  enter();
  while (true) {
    work_.wait([&] { return stop_ || submitted_ != done_; });
    if (submitted_ == done_)
      return; // stopped, and nothing left
    if (const Status status = carryOut(ring_[done_ % ring_.size()]); !status.ok())
      device_.fail(status);
    done_ += 1;
    idle_.notify();
  }
}

Status HostThreadQueue::carryOut(const Submission &submission) noexcept {
  const uint64_t reached = submission.call.microbatch + 1;
  for (const ListedCommand &command : *submission.commands) {
    at_ = command.what;
    for (const EventWait &awaited : command.waits)
      if (reached > awaited.delay)
        if (const Status status = wait(*awaited.event, reached - awaited.delay); !status.ok())
          return status;
    if (guard_.failed())
      return Status::success(); // dropped
    const std::unique_lock<std::mutex> mine = turn();
    guard_.moved();
    inside_ = true;
    const Status status = command.task->run(submission.call, *this);
    inside_ = false;
    guard_.moved();
    if (!status.ok())
      return status;
    for (Event *event : command.signals)
      if (const Status status = signal(*event, reached); !status.ok())
        return status;
  }
  return Status::success();
}

} // namespace ds::runtime
