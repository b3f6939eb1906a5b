//===- PeerMessages.h - messages with one peer, counted -------------------===//
#pragma once

#include <atomic>
#include <cstdint>

namespace ds::runtime {

/// Messages between a rank and one other member of a communicator since the beginning; the k-th that one sends is the
/// k-th that the other receives. So two records tell which message is on its way, also where all members are within the
/// same collective. Written by the thread of the communicator's queue alone, read by any.
struct PeerMessages {
  std::atomic<uint64_t> sent = 0;     ///< handed to the network
  std::atomic<uint64_t> expected = 0; ///< receives begun
  std::atomic<uint64_t> received = 0; ///< of these, those that have ended, as of a moment ago

  static void count(std::atomic<uint64_t> &messages) noexcept {
    messages.store(messages.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
  void allReceived() noexcept { received.store(expected.load(std::memory_order_relaxed), std::memory_order_relaxed); }
};

} // namespace ds::runtime
