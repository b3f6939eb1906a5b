//===- FirstFailure.h - of several failures, the first --------------------===//
#pragma once

#include "core/Status.h"

#include <atomic>

namespace ds::runtime {

/// Keeps the first failure reported from any thread.
class FirstFailure {
public:
  /// Returns whether this one was the first.
  bool report(const Status &status) noexcept {
    int none = None;
    if (!state_.compare_exchange_strong(none, Writing))
      return false;
    status_ = status;
    state_ = Known;
    return true;
  }
  /// Whether anything failed, its text perhaps still being written.
  bool failed() const noexcept { return state_ != None; }
  Status get() const noexcept {
    if (state_ == None)
      return Status::success();
    while (state_ != Known) { // a copy of 512 bytes away
    }
    return status_;
  }

private:
  enum State { None, Writing, Known };
  std::atomic<int> state_ = None;
  Status status_;
};

} // namespace ds::runtime
