//===- CpuEvent.h - a counter that threads wait for -----------------------===//
#pragma once

#include "runtime/device/Counter.h"
#include "runtime/device/Event.h"
#include "runtime/device/RunGuard.h"

#include <cstdint>

namespace ds::runtime {

class CpuEvent final : public Event {
public:
  explicit CpuEvent(RunGuard &guard) : counter(guard) {}
  uint64_t value() const noexcept override { return counter.value(); }
  void reset() noexcept override { counter.reset(); }

  Counter counter;
};

} // namespace ds::runtime
