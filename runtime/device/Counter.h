//===- Counter.h - a number that rises, and threads that wait for it ------===//
#pragma once

#include "runtime/device/WaitPoint.h"

#include <atomic>
#include <cstdint>

namespace ds::runtime {

class Counter {
public:
  uint64_t value() const noexcept { return value_; }
  void reset() noexcept { value_ = 0; }

  void raise(uint64_t value) noexcept {
    uint64_t seen = value_;
    while (seen < value && !value_.compare_exchange_weak(seen, value)) {
    }
    waiters_.notify();
  }
  void wait(uint64_t value) noexcept {
    waiters_.wait([&] { return value_ >= value; });
  }
  /// Lets every waiter go, now and later: the run has failed.
  void release() noexcept { raise(UINT64_MAX); }

private:
  std::atomic<uint64_t> value_ = 0;
  WaitPoint waiters_;
};

} // namespace ds::runtime
