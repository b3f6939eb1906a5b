//===- Event.h - order between queues -------------------------------------===//
#pragma once

#include <cstdint>

namespace ds::runtime {

/// A counter that only rises; queues wait for values of it. It may be waited for before anything is submitted that
/// raises it. Cf. VkSemaphore (timeline), cuStreamWaitValue64, hipStreamWaitValue64.
class Event {
public:
  virtual ~Event() = default;
  virtual uint64_t value() const noexcept = 0;
  /// Back to 0; only while no queue has anything to do.
  virtual void reset() noexcept = 0;
};

} // namespace ds::runtime
