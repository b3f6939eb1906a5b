//===- QueueStanding.h - where a queue stands, and whom it waits for ------===//
#pragma once

#include "runtime/device/Task.h"

#include <atomic>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace ds::runtime {

/// Where a queue stands: written by its thread with every command, read by any. It leads from a queue that has lost its
/// patience to the one that holds it up. For example, rank 0 waits for a message of rank 3:
///
///   rank 0, queue in  ->  rank 3, compute  ->  rank 3, comm  ->  rank 1, in: has not come out of feed of x
///           its receive     waits for an event   is in a collective     waits for nobody
///
/// A queue carries out its commands in order, so each arrow is a wait that cannot end before the next one does.
class QueueStanding {
public:
  QueueStanding(uint32_t rank, std::string name) : rank_(rank), name_(std::move(name)) {}

  uint32_t rank() const noexcept { return rank_; }
  const std::string &name() const noexcept { return name_; }

  // For its thread.

  void comesTo(const ListedCommand &command) noexcept {
    state_.store(State::Waits, relaxed);
    command_.store(&command, relaxed);
  }
  void waitsFor(const Event *event, uint64_t value) noexcept {
    value_.store(value, relaxed);
    event_.store(event, relaxed);
  }
  void begins() noexcept {
    event_.store(nullptr, relaxed);
    state_.store(State::Inside, relaxed);
  }
  void ends() noexcept { state_.store(State::Ended, relaxed); }
  void rests() noexcept { command_.store(nullptr, relaxed); }

  // For those who wait.

  /// "queue in has not come out of feed of x"
  std::string sentence() const;
  /// Adds the queues that it waits for; nullptr: one that is not known. None: it waits for nobody.
  void addAwaited(std::vector<const QueueStanding *> &queues) const;

private:
  enum class State : uint8_t { Waits, Inside, Ended };
  static constexpr auto relaxed = std::memory_order_relaxed;

  /// The event that is to come, or nullptr.
  const Event *awaitedEvent() const noexcept;

  const uint32_t rank_;
  const std::string name_;
  std::atomic<const ListedCommand *> command_ = nullptr; // nullptr: it has nothing to do
  std::atomic<State> state_ = State::Waits;
  std::atomic<const Event *> event_ = nullptr; // of Waits
  std::atomic<uint64_t> value_ = 0;            // that it is to reach
};

/// The first queue that holds up one of these, itself or through others, and waits for nobody. nullptr: they wait for
/// each other in a circle, or for what this process does not know.
const QueueStanding *holderOf(std::vector<const QueueStanding *> queues);

} // namespace ds::runtime
