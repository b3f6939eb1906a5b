//===- WaitPoint.h - wait briefly awake, then asleep ----------------------===//
#pragma once

#include "core/RunningClock.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace ds::runtime {

/// A place to wait for a condition over std::atomics. Waiting looks for a while, since most waits between kernels are
/// shorter than putting a thread to sleep and waking it (some 50 us together), then sleeps.
///
/// The condition must read its atomics sequentially consistent, and whoever changes them must have done so, likewise,
/// before it calls notify(): then either notify() sees the sleeper or the sleeper sees the change.
class WaitPoint {
public:
  template <typename Condition> void wait(Condition condition) noexcept {
    if (spin(condition))
      return;
    std::unique_lock<std::mutex> lock(mutex_);
    sleepers_.fetch_add(1);
    while (!condition())
      wake_.wait(lock);
    sleepers_.fetch_sub(1);
  }

  /// As wait, but gives up after `timeout` of a RunningClock; returns whether the condition holds.
  template <typename Condition> bool waitFor(Condition condition, std::chrono::milliseconds timeout) noexcept {
    if (spin(condition))
      return true;
    std::unique_lock<std::mutex> lock(mutex_);
    sleepers_.fetch_add(1);
    const bool holds = Patience(timeout).wait(wake_, lock, condition);
    sleepers_.fetch_sub(1);
    return holds;
  }

  void notify() noexcept {
    if (sleepers_.load() == 0)
      return;
    const std::lock_guard<std::mutex> lock(mutex_); // a sleeper holds it from its look to its sleep
    wake_.notify_all();
  }

private:
  static constexpr std::chrono::microseconds awake{50};

  template <typename Condition> static bool spin(Condition &condition) noexcept {
    const auto end = std::chrono::steady_clock::now() + awake;
    do {
      for (int i = 0; i < 32; ++i) {
        if (condition())
          return true;
#if defined(__x86_64__)
        _mm_pause();
#endif
      }
    } while (std::chrono::steady_clock::now() < end);
    return false;
  }

  std::atomic<int> sleepers_ = 0;
  std::mutex mutex_;
  std::condition_variable wake_;
};

} // namespace ds::runtime
