//===- HostThreadQueue.cpp - a queue with a thread on the host ------------===//
#include "runtime/device/HostThreadQueue.h"

#include "core/Status.h"
#include "runtime/device/Device.h"
#include "runtime/device/Queue.h"
#include "runtime/device/QueueStanding.h"
#include "runtime/device/RunGuard.h"
#include "runtime/device/Task.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <pthread.h>
#include <string>
#include <thread>
#include <utility>

namespace ds::runtime {

HostThreadQueue::HostThreadQueue(Device &device, RunGuard &guard, const QueueOptions &options)
    : device_(device), guard_(guard), patience_(options.patience), ring_(options.ring),
      standing_(options.rank, options.name), submissions_(std::max<size_t>(1, options.depth)) {}

void HostThreadQueue::start() {
  thread_ = std::thread([this] { serve(); });
  ::pthread_setname_np(thread_.native_handle(), standing_.name().substr(0, 15).c_str());
}

void HostThreadQueue::stop() noexcept {
  stop_ = true;
  work_.notify();
  thread_.join();
}

void HostThreadQueue::submit(const CommandList &commands, const Call &call) noexcept {
  const uint64_t place = submitted_;
  if (place - done_ >= submissions_.size())
    idle_.wait([&] { return place - done_ < submissions_.size(); });
  submissions_[place % submissions_.size()] = {&commands, call};
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
  const QueueStanding *found = holderOf({&standing_});
  const QueueStanding &holder = found != nullptr ? *found : standing_;
  const std::string owner = holder.rank() != standing_.rank() ? "rank " + std::to_string(holder.rank()) + "'s " : "";
  return Status::failure("rank %u: nothing has moved for %.3g s; %s%s", standing_.rank(),
                         double(patience_.count()) / 1000, owner.c_str(), holder.sentence().c_str());
}

void HostThreadQueue::serve() noexcept {
  enter();
  while (true) {
    work_.wait([&] { return stop_ || submitted_ != done_; });
    if (submitted_ == done_)
      return; // stopped, and nothing left
    if (const Status status = carryOut(submissions_[done_ % submissions_.size()]); !status.ok())
      device_.fail(status);
    if (!guard_.failed()) // else it stands where it was, for others that lose patience meanwhile
      standing_.rests();
    done_ += 1;
    idle_.notify();
  }
}

Status HostThreadQueue::awaitEvents(const ListedCommand &command, uint64_t reached) noexcept {
  for (size_t i = 0; i < command.waits.size(); ++i) {
    const auto [event, delay] = command.waits[i];
    if (reached <= delay)
      continue;
    standing_.waitsFor(event, reached - delay);
    if (ring_ != nullptr)
      ring_->waits(uint32_t(i));
    if (const Status status = wait(*event, reached - delay); !status.ok())
      return status;
  }
  return Status::success();
}

Status HostThreadQueue::carryOut(const Submission &submission) noexcept {
  const uint64_t reached = submission.call.microbatch + 1;
  for (const ListedCommand &command : *submission.commands) {
    if (guard_.failed())
      return Status::success(); // dropped, and the ring stays as it is
    standing_.comesTo(command);
    if (ring_ != nullptr)
      ring_->next(command.number, submission.call.index);
    if (const Status status = awaitEvents(command, reached); !status.ok() || guard_.failed())
      return status;
    const std::unique_lock<std::mutex> mine = turn();
    if (mine.owns_lock() && guard_.failed())
      return Status::success(); // who had the turn before has spoilt the recording, and NCCL would fail for good in it
    guard_.moved();
    standing_.begins();
    if (ring_ != nullptr)
      ring_->begins(command.entrances);
    const Status status = command.task->run(submission.call, *this);
    guard_.moved();
    if (!status.ok() && mine.owns_lock())
      device_.fail(status); // before the next turn
    if (!status.ok())
      return status;
    standing_.ends();
    if (ring_ != nullptr)
      ring_->ends();
    for (Event *event : command.signals)
      if (const Status status = signal(*event, reached); !status.ok())
        return status;
  }
  return Status::success();
}

} // namespace ds::runtime
