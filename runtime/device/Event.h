//===- Event.h - order between queues -------------------------------------===//
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace ds::runtime {

class QueueStanding;

/// A counter that only rises; queues wait for values of it. It may be waited for before anything is submitted that
/// raises it. Cf. VkSemaphore (timeline), cuStreamWaitValue64, hipStreamWaitValue64.
class Event {
public:
  virtual ~Event() = default;
  virtual uint64_t value() const noexcept = 0;
  /// Back to 0; only while no queue has anything to do.
  virtual void reset() noexcept = 0;

  /// The queues that raise it, told before the first run: for whom others wait that wait for it.
  void raisedBy(const QueueStanding &queue) {
    if (std::ranges::find(raisers_, &queue) == raisers_.end())
      raisers_.push_back(&queue);
  }
  const std::vector<const QueueStanding *> &raisers() const noexcept { return raisers_; }

private:
  std::vector<const QueueStanding *> raisers_;
};

} // namespace ds::runtime
