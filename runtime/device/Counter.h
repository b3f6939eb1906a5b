//===- Counter.h - a number that rises, and threads that wait for it ------===//
#pragma once

#include "runtime/device/RunGuard.h"

#include <atomic>
#include <cstdint>

namespace ds::runtime {

class Counter {
public:
  explicit Counter(RunGuard &guard) : changes_(guard) {}

  uint64_t value() const noexcept { return value_; }
  void reset() noexcept { value_ = 0; }

  void raise(uint64_t value) noexcept {
    uint64_t seen = value_;
    while (seen < value && !value_.compare_exchange_weak(seen, value)) {
    }
    changes_.notify();
  }
  /// Returns false when the run has failed.
  [[nodiscard]] bool wait(uint64_t value) noexcept {
    return changes_.wait([&] { return value_ >= value; });
  }

private:
  std::atomic<uint64_t> value_ = 0;
  RunGuard::Wait changes_;
};

} // namespace ds::runtime
