//===- PlacedBuffersTest.cpp - gaps, compared with all offsets tried in turn ---===//
#include "compiler/scheduling/PlacedBuffers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

namespace ds::scheduling {
namespace {

TEST(PlacedBuffers, AnEmptyArenaIsFree) {
  PlacedBuffers placed;
  EXPECT_EQ(placed.lowestGap(64, 128, std::vector<uint64_t>{~uint64_t(0)}), 128);
  placed.insert(0, 128, 192);
  EXPECT_EQ(placed.lowestGap(64, 128, std::vector<uint64_t>{1}), 192);
  placed.clear();
  EXPECT_EQ(placed.lowestGap(64, 128, std::vector<uint64_t>{1}), 128);
}

// Buffers lie anywhere, over each other too, as those do that never meet.
TEST(PlacedBuffers, GapsAreTheLowest) {
  struct Range {
    int64_t offset, end;
  };
  for (uint32_t seed = 1; seed <= 200; ++seed) {
    std::mt19937 random(seed);
    const auto below = [&](int64_t n) { return int64_t(random() % uint32_t(n)); };
    PlacedBuffers placed;
    std::vector<Range> ranges;
    for (int64_t buffers = 1 + below(150); buffers > 0; --buffers) {
      std::vector<uint64_t> meets(3);
      for (uint64_t &word : meets)
        word = uint64_t(random()) << 32 | random();
      const int64_t bytes = 1 + below(20), from = below(10);
      int64_t lowest = from;
      const auto isTaken = [&](size_t other) {
        return (meets[other / 64] >> (other % 64) & 1) != 0 && ranges[other].offset < lowest + bytes &&
               lowest < ranges[other].end;
      };
      for (bool taken = true; taken;) {
        taken = false;
        for (size_t other = 0; other < ranges.size(); ++other)
          taken |= isTaken(other);
        lowest += taken;
      }
      ASSERT_EQ(placed.lowestGap(bytes, from, meets), lowest) << "seed " << seed;
      const int64_t offset = below(3) == 0 ? below(300) : lowest;
      placed.insert(ranges.size(), offset, offset + bytes);
      ranges.push_back({offset, offset + bytes});
    }
  }
}

} // namespace
} // namespace ds::scheduling
