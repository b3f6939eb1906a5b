//===- RunningClock.h - time in which this process runs -------------------===//
//
// Whoever waits for others gives up after a time. A process that was stopped (Ctrl-Z) or frozen has not waited
// meanwhile, and others that were stopped with it are not late. No clock of the system says so; a look now and then
// does.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <utility>

namespace ds {

/// Of the time between two looks at most `most` counts, so whoever waits looks at least as often. Of one thread.
class RunningClock {
public:
  using Time = std::chrono::steady_clock::time_point;
  using Source = Time (*)();
  static constexpr std::chrono::milliseconds piece{100};

  explicit RunningClock(std::chrono::milliseconds most = piece, Source source = std::chrono::steady_clock::now)
      : most_(most), source_(source) {}

  Time now() noexcept {
    const Time looked = source_();
    now_ += std::min<Time::duration>(looked - std::exchange(looked_, looked), most_);
    return now_;
  }

private:
  std::chrono::milliseconds most_;
  Source source_;
  Time looked_ = source_(), now_ = looked_;
};

/// How long somebody still waits, by such a clock.
class Patience {
public:
  explicit Patience(std::chrono::milliseconds timeout, RunningClock clock = RunningClock())
      : clock_(clock), end_(clock_.now() + timeout) {}

  bool over() noexcept { return clock_.now() >= end_; }
  /// For the next sleep: what is left, at least 0 and at most a piece.
  std::chrono::milliseconds nextSleep() noexcept {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end_ - clock_.now());
    return std::clamp(left, std::chrono::milliseconds(0), RunningClock::piece);
  }
  /// As std::condition_variable::wait_for.
  template <typename Condition>
  bool wait(std::condition_variable &wake, std::unique_lock<std::mutex> &lock, Condition condition) {
    bool holds = condition();
    while (!holds && !over())
      holds = wake.wait_for(lock, nextSleep(), condition);
    return holds;
  }

private:
  RunningClock clock_;
  RunningClock::Time end_;
};

} // namespace ds
