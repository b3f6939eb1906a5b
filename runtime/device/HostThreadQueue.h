//===- HostThreadQueue.h - a queue with a thread on the host --------------===//
#pragma once

#include "runtime/device/CommandRing.h"
#include "runtime/device/Device.h"
#include "runtime/device/Queue.h"
#include "runtime/device/QueueStanding.h"
#include "runtime/device/RunGuard.h"
#include "runtime/device/Task.h"
#include "runtime/device/WaitPoint.h"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

namespace ds::runtime {

/// A thread that takes submissions in order and runs their tasks between their waits and signals. What a task, a wait
/// and a signal come to is the derived queue's: on a processor the work itself, on an accelerator its place in a
/// stream.
class HostThreadQueue : public Queue {
public:
  HostThreadQueue(const HostThreadQueue &) = delete;
  HostThreadQueue &operator=(const HostThreadQueue &) = delete;

  void submit(const CommandList &commands, const Call &call) noexcept override;
  /// Waits until the thread has nothing left to do; also after a failure, since a task that is still under way uses the
  /// rank's memory.
  void finish() noexcept override;
  const QueueStanding *standing() const noexcept override { return &standing_; }

protected:
  /// `guard` is the device's; both outlive the queue.
  HostThreadQueue(Device &device, RunGuard &guard, const QueueOptions &options);

  /// Last in a derived constructor, since the thread calls what is virtual here.
  void start();
  /// First in a derived destructor: carries out what was submitted and ends the thread.
  void stop() noexcept;

  std::chrono::milliseconds patience() const noexcept { return patience_; }

  /// First on the thread.
  virtual void enter() noexcept {}
  /// Held while a task runs and its signals are raised.
  virtual std::unique_lock<std::mutex> turn() noexcept { return {}; }
  /// Returns when what the thread does next is behind `value`, or the device has failed.
  virtual Status wait(Event &event, uint64_t value) noexcept = 0;
  /// Raises the event to `value` when all that the thread has done is done.
  virtual Status signal(Event &event, uint64_t value) noexcept = 0;

private:
  struct Submission {
    const CommandList *commands;
    Call call;
  };

  void serve() noexcept;
  Status carryOut(const Submission &submission) noexcept;
  Status awaitEvents(const ListedCommand &command, uint64_t reached) noexcept;
  /// The watchdog's sentence.
  Status standstill() const noexcept;

  Device &device_;
  RunGuard &guard_;
  const std::chrono::milliseconds patience_;
  CommandRing *const ring_;
  QueueStanding standing_;
  std::vector<Submission> submissions_; // a ring
  std::atomic<uint64_t> submitted_ = 0; // counts up for ever; the ring's place is its remainder
  std::atomic<uint64_t> done_ = 0;
  std::atomic<bool> stop_ = false;
  WaitPoint work_; // the thread waits here for submissions
  WaitPoint idle_; // the host waits here for their end
  std::thread thread_;
};

} // namespace ds::runtime
