//===- FirstFailure.h - of several failures, the first --------------------===//
#pragma once

#include "core/Status.h"

#include <atomic>
#include <mutex>

namespace ds::runtime {

/// Keeps the first failure reported from any thread. Readers sleep while it is written: threads that spin there, one of
/// each queue of each rank, can keep the writer from its turn.
class FirstFailure {
public:
  /// Returns whether this one was the first.
  bool report(const Status &status) noexcept {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (failed_)
      return false;
    status_ = status;
    failed_ = true;
    return true;
  }
  /// The next one is the first again.
  void forget() noexcept {
    const std::lock_guard<std::mutex> lock(mutex_);
    failed_ = false;
  }
  bool failed() const noexcept { return failed_; }
  Status get() const noexcept {
    if (!failed_)
      return Status::success();
    const std::lock_guard<std::mutex> lock(mutex_);
    return status_;
  }

private:
  mutable std::mutex mutex_; // of status_
  std::atomic<bool> failed_ = false;
  Status status_;
};

} // namespace ds::runtime
