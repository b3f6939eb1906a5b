//===- RunGuard.h - the first failure, and the waits that it ends ---------===//
#pragma once

#include "core/Status.h"
#include "runtime/device/FirstFailure.h"
#include "runtime/device/WaitPoint.h"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <list>
#include <mutex>

namespace ds::runtime {

/// What threads that wait for each other have in common: no wait of theirs lasts once one of them has failed, whether
/// it began before or begins afterwards. For example, a device's queues wait for events as
///
///   if (!arrivals.wait([&] { return value >= 3; }))
///     return; // something failed; nothing may rely on the value
///
/// Failure is a part of every wait's condition, so nothing that is reset between runs can lose it. Only a recording
/// that failed takes its own back (forget).
class RunGuard {
public:
  class Wait;

  RunGuard() = default;
  RunGuard(const RunGuard &) = delete;
  RunGuard &operator=(const RunGuard &) = delete;

  /// Ends every wait. Returns whether this failure was the first, which alone is kept.
  bool report(const Status &status) noexcept;
  /// While nothing waits.
  void forget() noexcept { failure_.forget(); }
  bool failed() const noexcept { return failure_.failed(); }
  Status get() const noexcept { return failure_.get(); }

  /// Something has begun or ended. A watchdog compares the number with the one that it saw before.
  void moved() noexcept { movements_.fetch_add(1, std::memory_order_relaxed); }
  uint64_t movements() const noexcept { return movements_.load(std::memory_order_relaxed); }

private:
  FirstFailure failure_;
  std::atomic<uint64_t> movements_ = 0;
  std::mutex mutex_; // of waits_
  std::list<Wait *> waits_;
};

/// A place to wait for a condition, as a WaitPoint, or for a failure.
class RunGuard::Wait {
public:
  explicit Wait(RunGuard &guard) : guard_(guard) {
    const std::lock_guard<std::mutex> lock(guard_.mutex_);
    place_ = guard_.waits_.insert(guard_.waits_.end(), this);
  }
  ~Wait() {
    const std::lock_guard<std::mutex> lock(guard_.mutex_);
    guard_.waits_.erase(place_);
  }
  Wait(const Wait &) = delete;
  Wait &operator=(const Wait &) = delete;

  /// Returns false when something has failed, whatever the condition says.
  template <typename Condition> [[nodiscard]] bool wait(Condition condition) noexcept {
    point_.wait([&] { return guard_.failed() || condition(); });
    return !guard_.failed();
  }
  /// As wait; returns false, too, when the time is up.
  template <typename Condition>
  [[nodiscard]] bool waitFor(Condition condition, std::chrono::milliseconds timeout) noexcept {
    return point_.waitFor([&] { return guard_.failed() || condition(); }, timeout) && !guard_.failed();
  }
  void notify() noexcept { point_.notify(); }

private:
  RunGuard &guard_;
  WaitPoint point_;
  std::list<Wait *>::iterator place_;
};

inline bool RunGuard::report(const Status &status) noexcept {
  if (!failure_.report(status))
    return false;
  const std::lock_guard<std::mutex> lock(mutex_);
  for (Wait *wait : waits_)
    wait->notify();
  return true;
}

} // namespace ds::runtime
