//===- FailureNotice.h - the first failure of a process, told once --------===//
#pragma once

#include "core/Status.h"
#include "runtime/device/FirstFailure.h"

#include <functional>
#include <mutex>
#include <utility>

namespace ds::runtime {

/// Keeps the first failure reported from any thread and tells one listener of it, once, whichever of the two comes
/// first.
class FailureNotice {
public:
  bool failed() const noexcept { return failure_.failed(); }
  Status get() const noexcept { return failure_.get(); }

  /// Returns whether this one was the first.
  bool report(const Status &status) noexcept {
    if (!failure_.report(status)) // which the listener may lead to
      return false;
    const std::lock_guard<std::mutex> lock(mutex_);
    if (listener_ && !std::exchange(told_, true))
      listener_(status);
    return true;
  }
  /// Replaces the listener; an empty one hears nothing.
  void onFailure(std::function<void(const Status &)> listener) {
    const std::lock_guard<std::mutex> lock(mutex_);
    listener_ = std::move(listener);
    if (listener_ && failed() && !std::exchange(told_, true))
      listener_(get());
  }

private:
  FirstFailure failure_;
  std::mutex mutex_; // of the two below
  std::function<void(const Status &)> listener_;
  bool told_ = false;
};

} // namespace ds::runtime
