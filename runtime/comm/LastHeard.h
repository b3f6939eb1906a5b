//===- LastHeard.h - when each rank was last known to run -----------------===//
//
// A process says every half second that it runs, beside the collectives, so that a rank which waits can tell one that
// is slow from one that was stopped or whose link is down. Cf. NCCL's RAS.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace ds::runtime {

constexpr std::chrono::milliseconds beatInterval{500};

/// As one process knows it: from the others themselves, or from some that have heard of them. One thread hears, any may
/// ask. All have been heard of at first.
class LastHeard {
public:
  using Clock = int64_t (*)(); ///< ms since any moment, never less than before

  LastHeard(uint32_t rank, uint32_t ranks, Clock clock = steadyMs) : rank_(rank), clock_(clock), heardMs_(ranks) {
    for (std::atomic<int64_t> &heard : heardMs_)
      heard = clock_();
  }

  int64_t agoMs(uint32_t rank) const noexcept {
    return rank == rank_ ? 0 : std::max<int64_t>(0, clock_() - heardMs_[rank]);
  }
  /// What to tell another process: of each rank, how many ms ago.
  void tell(std::span<uint32_t> agoMs) const noexcept {
    for (uint32_t rank = 0; rank < heardMs_.size(); ++rank)
      agoMs[rank] = uint32_t(std::min<int64_t>(this->agoMs(rank), UINT32_MAX));
  }
  /// What another has told.
  void hear(std::span<const uint32_t> agoMs) noexcept {
    const int64_t now = clock_();
    for (uint32_t rank = 0; rank < heardMs_.size() && rank < agoMs.size(); ++rank)
      heardMs_[rank] = std::max(heardMs_[rank].load(), now - agoMs[rank]);
  }
  /// Whom to tell at the k-th beat. Distances double, so that what one knows is known to all after as many beats as
  /// their number has digits, of a message each. Cf. the dissemination barrier (Hensgen, Finkel and Manber, 1988).
  static uint32_t peerOfBeat(uint64_t k, uint32_t rank, uint32_t ranks) noexcept {
    uint32_t digits = 0;
    while ((uint64_t(1) << digits) < ranks)
      ++digits;
    return uint32_t((rank + (uint64_t(1) << k % std::max(1u, digits))) % ranks);
  }

private:
  static int64_t steadyMs() noexcept {
    return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
  }

  const uint32_t rank_;
  const Clock clock_;
  std::vector<std::atomic<int64_t>> heardMs_; // by rank
};

} // namespace ds::runtime
