//===- RepeatedOffsetsTest.cpp - buffers that live again, by hand and at random ---===//
#include "compiler/scheduling/RepeatedOffsets.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <random>
#include <vector>

namespace ds::scheduling {
namespace {

/// Buffers of up to five lives, one after another.
RepeatedProblem randomProblem(uint32_t seed) {
  std::mt19937 random(seed);
  const auto below = [&](int64_t n) { return int64_t(random() % uint32_t(n)); };
  RepeatedProblem problem;
  problem.alignment = int64_t(1) << below(10);
  const int64_t buffers = 1 + below(80);
  for (int64_t i = 0; i < buffers; ++i) {
    problem.buffers.push_back({below(20) == 0 ? 0 : 1 + below(int64_t(1) << (1 + below(20))), below(4)});
    int64_t time = below(60);
    for (int64_t lives = 1 + below(5); lives > 0; --lives) {
      const int64_t end = time + 1 + below(30);
      problem.lives.push_back({size_t(i), time, end});
      time = end + below(30);
    }
  }
  return problem;
}

/// Micro-batches overlap by two: each keeps a value from its forward on until the next forward is done.
RepeatedProblem twoInFlight(int64_t slots) {
  RepeatedProblem problem;
  for (int64_t slot = 0; slot < slots; ++slot)
    problem.buffers.push_back({256, slot + 1});
  for (int64_t m = 0; m < 6; ++m)
    problem.lives.push_back({size_t(m % slots), 10 * m, 10 * m + 15});
  return problem;
}

TEST(RepeatedOffsets, TwoCopiesAreEnoughForTwoInFlight) {
  const RepeatedProblem problem = twoInFlight(2);
  ASSERT_EQ(problem.check(), std::nullopt);
  EXPECT_EQ(problem.lowerBound(), 512);
  EXPECT_EQ(problem.arenaBytes(assignRepeated(problem)), 512);
}

TEST(RepeatedOffsets, MoreCopiesTakeTheBytesOfEachOther) {
  const RepeatedProblem problem = twoInFlight(6);
  EXPECT_EQ(problem.arenaBytes(assignRepeated(problem)), 512);
}

// One that lives in the gaps of another lies on its bytes; what lives in both lies beside them.
TEST(RepeatedOffsets, GapsBetweenLivesAreUsed) {
  RepeatedProblem problem;
  problem.buffers = {{256}, {256}, {64}};
  problem.lives = {{0, 0, 2}, {1, 2, 4}, {0, 4, 6}, {1, 6, 8}, {2, 1, 8}};
  const std::vector<int64_t> offsets = assignRepeated(problem);
  EXPECT_EQ(offsets[0], offsets[1]);
  EXPECT_EQ(problem.verify(offsets), std::nullopt);
  EXPECT_EQ(problem.arenaBytes(offsets), 320);
}

// Two values of a micro-batch, one taking the other's bytes, are kept together; a third micro-batch takes the first
// one's block.
TEST(RepeatedOffsets, ABlockMovesAsOne) {
  RepeatedProblem problem;
  problem.buffers = {{256, 1, 1}, {192, 1, 1}, {256, 2, 2}, {192, 2, 2}, {256, 3, 3}, {192, 3, 3}, {64}};
  problem.lives = {{0, 0, 3}, {1, 3, 6}, {2, 2, 7}, {3, 7, 9}, {4, 6, 10}, {5, 10, 12}, {6, 0, 12}};
  ASSERT_EQ(problem.check(), std::nullopt);
  const std::vector<int64_t> offsets = assignInBlocks(problem);
  EXPECT_EQ(problem.verify(offsets), std::nullopt);
  EXPECT_EQ(problem.arenaBytes(offsets), 64 + 2 * 256);
  EXPECT_EQ(offsets[0], offsets[1]);
  EXPECT_EQ(offsets[0], offsets[4]);
}

TEST(RepeatedOffsets, NoBuffersNoBytes) {
  EXPECT_TRUE(assignRepeated({}).empty());
  EXPECT_TRUE(assignInBlocks({}).empty());
}

TEST(RepeatedOffsets, RandomBlocksAreRight) {
  for (uint32_t seed = 1; seed <= 500; ++seed) {
    RepeatedProblem problem = randomProblem(seed);
    std::vector<int> lives(problem.buffers.size());
    for (const RepeatedProblem::Life &life : problem.lives)
      ++lives[life.buffer];
    for (size_t i = 0; i < lives.size(); ++i)
      problem.buffers[i].block = lives[i] == 1 ? int64_t(i % 5) : 0;
    const std::vector<int64_t> offsets = assignInBlocks(problem);
    ASSERT_EQ(problem.verify(offsets), std::nullopt) << "seed " << seed;
    ASSERT_EQ(assignInBlocks(problem), offsets) << "seed " << seed;
  }
}

TEST(RepeatedOffsets, RandomInstancesAreRight) {
  for (uint32_t seed = 1; seed <= 1000; ++seed) {
    const RepeatedProblem problem = randomProblem(seed);
    ASSERT_EQ(problem.check(), std::nullopt) << "seed " << seed;
    const std::vector<int64_t> offsets = assignRepeated(problem);
    ASSERT_EQ(problem.verify(offsets), std::nullopt) << "seed " << seed;
    ASSERT_GE(problem.arenaBytes(offsets), problem.lowerBound()) << "seed " << seed;
    ASSERT_EQ(assignRepeated(problem), offsets) << "seed " << seed;
  }
}

// Less than the full effort is made only where that is small enough, and it is never smaller than what lives at once.
TEST(RepeatedOffsets, EnoughIsEnough) {
  for (uint32_t seed = 1; seed <= 300; ++seed) {
    const RepeatedProblem problem = randomProblem(seed);
    const int64_t least = problem.arenaBytes(assignRepeated(problem));
    for (int64_t enough : {problem.lowerBound() - 1, least - 1, least, least + least / 8}) {
      if (enough < 0)
        continue;
      const std::vector<int64_t> offsets = assignRepeated(problem, {.enough = enough});
      ASSERT_EQ(problem.verify(offsets), std::nullopt) << "seed " << seed;
      ASSERT_LE(problem.arenaBytes(offsets), std::max(least, enough)) << "seed " << seed;
      ASSERT_GE(problem.arenaBytes(offsets), problem.lowerBound()) << "seed " << seed;
    }
  }
}

// The search is cut short only where it would find none below anyway.
TEST(RepeatedOffsets, NoneBelowWhatIsProven) {
  for (uint32_t seed = 1; seed <= 300; ++seed) {
    const RepeatedProblem problem = randomProblem(seed);
    const auto arenaOf = [&](const std::vector<int64_t> &offsets) {
      return (problem.arenaBytes(offsets) + problem.alignment - 1) & -problem.alignment;
    };
    const std::vector<int64_t> best = assignRepeated(problem);
    const int64_t least = arenaOf(best);
    for (int64_t below : {problem.lowerBound(), least, least + 1}) {
      const std::vector<int64_t> offsets = assignRepeated(problem, {.below = below});
      ASSERT_EQ(problem.verify(offsets), std::nullopt) << "seed " << seed;
      if (least < below)
        ASSERT_EQ(offsets, best) << "seed " << seed;
      else
        ASSERT_GE(arenaOf(offsets), below) << "seed " << seed;
    }
  }
}

// Three buffers, of which each two meet and never all at once, lie side by side.
TEST(RepeatedOffsets, MeetingByTurnsProvesWhatItTakes) {
  RepeatedProblem problem;
  problem.buffers = {{256}, {192}, {64}};
  problem.lives = {{0, 0, 2}, {1, 1, 4}, {2, 3, 6}, {0, 5, 7}};
  EXPECT_EQ(problem.lowerBound(), 448);
  EXPECT_EQ(problem.arenaBytes(assignRepeated(problem)), 512);
}

// verify() is judged too: two buffers at one place that ever live together are found.
TEST(RepeatedOffsets, OverlapsInAnyLifeAreCaught) {
  RepeatedProblem problem;
  problem.buffers = {{64}, {64}};
  problem.lives = {{0, 0, 2}, {1, 2, 4}, {0, 6, 8}, {1, 7, 9}};
  EXPECT_NE(problem.verify(std::vector<int64_t>{0, 0}), std::nullopt);
  EXPECT_EQ(problem.verify(std::vector<int64_t>{0, 64}), std::nullopt);
}

TEST(RepeatedOffsets, SaysWhatMakesNoSense) {
  const auto reason = [](std::vector<RepeatedProblem::Life> lives) {
    RepeatedProblem problem;
    problem.buffers = {{64}};
    problem.lives = std::move(lives);
    return problem.check().value_or("sound");
  };
  EXPECT_EQ(reason({}), "buffer 0 never lives");
  EXPECT_EQ(reason({{1, 0, 1}}), "a life is that of buffer 1 of 1");
  EXPECT_EQ(reason({{0, 4, 6}, {0, 0, 5}}), "buffer 0 lives again from 4 on, before its life up to 5 has ended");
  EXPECT_NE(reason({{0, 3, 3}}).find("never lives"), std::string::npos);
  EXPECT_EQ(RepeatedProblem(twoInFlight(1)).check(),
            "buffer 0 lives again from 10 on, before its life up to 15 has ended");
}

} // namespace
} // namespace ds::scheduling
