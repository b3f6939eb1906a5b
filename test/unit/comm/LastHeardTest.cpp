//===- LastHeardTest.cpp - when each rank was last known to run -----------===//
#include "runtime/comm/LastHeard.h"

#include <cstdint>
#include <deque>
#include <gtest/gtest.h>
#include <vector>

namespace ds::runtime {
namespace {

/// The tests' own clock: what they show must not hang on how fast the machine is.
int64_t testMs = 0;
int64_t testClock() { return testMs; }
constexpr int64_t quietMs = 300;

uint32_t digitsOf(uint32_t ranks) {
  uint32_t digits = 0;
  while (1u << digits < ranks)
    ++digits;
  return digits;
}

/// After as many beats as the number of ranks has binary digits everyone has heard of all, but for those that stand
/// still, of whom nobody has.
TEST(LastHeard, SpreadsInAFewBeats) {
  for (const uint32_t ranks : {2u, 3u, 4u, 5u, 8u, 13u}) {
    std::deque<LastHeard> all;
    for (uint32_t rank = 0; rank < ranks; ++rank)
      all.emplace_back(rank, ranks, testClock);
    testMs += quietMs;
    std::vector<uint32_t> told(ranks);
    for (uint64_t beat = 0; beat < digitsOf(ranks); ++beat) {
      std::vector<std::vector<uint32_t>> messages; // of one beat, which nobody forwards
      for (uint32_t rank = 0; rank < ranks; ++rank) {
        all[rank].tell(told);
        messages.push_back(told);
      }
      for (uint32_t rank = 0; rank < ranks; ++rank)
        all[LastHeard::peerOfBeat(beat, rank, ranks)].hear(messages[rank]);
    }
    for (uint32_t rank = 0; rank < ranks; ++rank)
      for (uint32_t other = 0; other < ranks; ++other)
        EXPECT_EQ(all[rank].agoMs(other), 0) << "of " << ranks << " ranks, " << rank << " of " << other;
  }
}

TEST(LastHeard, KnowsForHowLongARankWasQuiet) {
  LastHeard first(0, 3, testClock);
  testMs += quietMs;
  first.hear(std::vector<uint32_t>{0, 0, 100}); // rank 1 has heard of rank 2 then
  EXPECT_EQ(first.agoMs(1), 0);
  EXPECT_EQ(first.agoMs(2), 100);
  first.hear(std::vector<uint32_t>{0, 5000, 5000}); // older news
  EXPECT_EQ(first.agoMs(2), 100);
}

} // namespace
} // namespace ds::runtime
