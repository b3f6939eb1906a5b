//===- MonotoneSearchTest.cpp - found packings verified, refusals proven --===//
#include "compiler/scheduling/OffsetProblem.h"
#include "test/unit/scheduling/PublicInstances.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

namespace ds::scheduling {
namespace {

constexpr int64_t manyNodes = 100000;

/// Few sizes and lives, so that packings without a gap are common.
OffsetProblem smallProblem(uint32_t seed) {
  std::mt19937 random(seed);
  const auto below = [&](int64_t n) { return int64_t(random() % uint32_t(n)); };
  OffsetProblem problem;
  problem.alignment = int64_t(1) << below(3);
  for (int64_t i = 0, count = 1 + below(6); i < count; ++i) {
    const int64_t begin = below(6);
    problem.buffers.push_back({below(6), begin, begin + 1 + below(4)});
  }
  return problem;
}

/// The least arena: in some order of the buffers, each at the lowest place above those before it that live with it.
int64_t minArena(const OffsetProblem &problem) {
  const auto &buffers = problem.buffers;
  std::vector<size_t> order(buffers.size());
  std::iota(order.begin(), order.end(), size_t(0));
  int64_t least = std::numeric_limits<int64_t>::max();
  do {
    std::vector<int64_t> offsets(buffers.size(), 0);
    for (size_t at = 0; at < order.size(); ++at)
      for (size_t before = 0; before < at; ++before) {
        const auto &mine = buffers[order[at]], &other = buffers[order[before]];
        if (mine.begin < other.end && other.begin < mine.end && other.bytes > 0)
          offsets[order[at]] =
              std::max(offsets[order[at]], (offsets[order[before]] + other.bytes + problem.alignment - 1) /
                                               problem.alignment * problem.alignment);
      }
    least = std::min(least, problem.arenaBytes(offsets));
  } while (std::next_permutation(order.begin(), order.end()));
  return least;
}

TEST(MonotoneSearch, FindsWhatFirstFitMisses) {
  OffsetProblem problem;
  problem.alignment = 1;
  // Largest first, c and b lie at 0, d on c at 5, a on d at 9: 12. With a at 0 and b on it, d lies at 7: 11.
  problem.buffers = {{3, 0, 2}, {4, 1, 2}, {5, 2, 4}, {4, 1, 3}};
  problem.capacity = problem.lowerBound();
  EXPECT_GT(problem.arenaBytes(assignFirstFit(problem)), problem.capacity);
  const auto offsets = searchMonotone(problem, manyNodes);
  ASSERT_TRUE(offsets);
  EXPECT_EQ(problem.verify(*offsets), std::nullopt);
}

TEST(MonotoneSearch, NoBuffersAndNoBytes) {
  EXPECT_EQ(searchMonotone({}, manyNodes), std::vector<int64_t>{});
  OffsetProblem problem;
  problem.capacity = 0;
  problem.buffers = {{0, 0, 1}, {0, 0, 2}};
  EXPECT_EQ(searchMonotone(problem, manyNodes), (std::vector<int64_t>{0, 0}));
}

// The least arena is found, and nothing below it is.
TEST(MonotoneSearch, EqualsBruteForce) {
  for (uint32_t seed = 1; seed <= 10000; ++seed) {
    OffsetProblem problem = smallProblem(seed);
    problem.capacity = minArena(problem);
    ASSERT_EQ(problem.check(), std::nullopt) << "seed " << seed;
    // Sizes are packed as multiples of the alignment.
    problem.capacity = (problem.capacity + problem.alignment - 1) / problem.alignment * problem.alignment;
    const auto offsets = searchMonotone(problem, manyNodes);
    ASSERT_TRUE(offsets) << "seed " << seed << ", capacity " << problem.capacity;
    ASSERT_EQ(problem.verify(*offsets), std::nullopt) << "seed " << seed;
    ASSERT_EQ(searchMonotone(problem, manyNodes), offsets) << "seed " << seed;
    if (problem.capacity == 0)
      continue;
    problem.capacity -= problem.alignment;
    ASSERT_EQ(searchMonotone(problem, manyNodes), std::nullopt) << "seed " << seed;
  }
}

TEST(MonotoneSearch, GivesUpAfterItsNodes) {
  OffsetProblem problem;
  problem.capacity = 1 << 20;
  for (int64_t i = 0; i < 50; ++i)
    problem.buffers.push_back({64, 0, 1});
  EXPECT_EQ(searchMonotone(problem, 49), std::nullopt);
  EXPECT_NE(searchMonotone(problem, 50), std::nullopt);
}

// A million nodes are under ten seconds, also with assertions.
TEST(MonotoneSearch, PublicInstances) {
  const std::filesystem::path folder = minimallocFolder();
  if (!std::filesystem::exists(folder))
    GTEST_SKIP() << "no public instances at " << folder << "; DS_DATA_DIR names their parent folder";
  for (const Published &instance : publicInstances) {
    SCOPED_TRACE(instance.file);
    OffsetProblem problem = readInstance(folder / instance.file);
    ASSERT_EQ(problem.buffers.size(), instance.buffers);
    problem.capacity = instance.capacity;
    const auto offsets = searchMonotone(problem, 1000000);
    ASSERT_TRUE(offsets);
    EXPECT_EQ(problem.verify(*offsets), std::nullopt);
  }
}

// Never worse than first fit, and without a gap on what training looks like.
TEST(AssignOffsets, IsTheBetterOne) {
  for (uint32_t seed = 1; seed <= 2000; ++seed) {
    const OffsetProblem problem = smallProblem(seed);
    const std::vector<int64_t> offsets = assignOffsets(problem);
    ASSERT_EQ(problem.verify(offsets), std::nullopt) << "seed " << seed;
    ASSERT_LE(problem.arenaBytes(offsets), problem.arenaBytes(assignFirstFit(problem))) << "seed " << seed;
  }
}

} // namespace
} // namespace ds::scheduling
