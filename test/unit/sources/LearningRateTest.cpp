//===- LearningRateTest.cpp - DeepSpeed's schedules -----------------------===//
//
// The expected numbers were computed by hand from deepspeed/runtime/lr_schedules.py's formulas.
//
//===----------------------------------------------------------------------===//
#include "compiler/sources/LearningRate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace ds::sources {
namespace {

TEST(LearningRate, IsConstantWithoutASchedule) {
  const Schedule schedule{.lr = 0.5};
  EXPECT_EQ(learningRate(schedule, 0), 0.5);
  EXPECT_EQ(learningRate(schedule, 1000000), 0.5);
}

TEST(LearningRate, WarmsUpAlongALineOrALogarithm) {
  Schedule schedule{.type = "WarmupLR", .linear = true, .least = 1, .most = 5, .warmup = 4};
  EXPECT_EQ(learningRate(schedule, 0), 1);
  EXPECT_EQ(learningRate(schedule, 1), 1);
  EXPECT_EQ(learningRate(schedule, 3), 3);
  EXPECT_EQ(learningRate(schedule, 5), 5);
  schedule.linear = false;
  EXPECT_DOUBLE_EQ(learningRate(schedule, 2), 1 + 4 * std::log(2) / std::log(4));
  EXPECT_EQ(learningRate(schedule, 100), 5);
}

TEST(LearningRate, DecaysToItsLeast) {
  const Schedule schedule{.type = "WarmupDecayLR", .linear = true, .least = 0, .most = 8, .warmup = 2, .total = 10};
  EXPECT_EQ(learningRate(schedule, 3), 8);
  EXPECT_EQ(learningRate(schedule, 7), 4);
  EXPECT_EQ(learningRate(schedule, 11), 0);
  EXPECT_EQ(learningRate(schedule, 1000), 0);
}

TEST(LearningRate, FollowsACosine) {
  const Schedule schedule{
      .type = "WarmupCosineLR", .linear = true, .lr = 2, .leastRatio = 0, .cosineRatio = 0.5, .warmup = 2, .total = 4};
  EXPECT_EQ(learningRate(schedule, 0), 0);
  EXPECT_EQ(learningRate(schedule, 2), 1);
  EXPECT_DOUBLE_EQ(learningRate(schedule, 3), 1.5);
  EXPECT_DOUBLE_EQ(learningRate(schedule, 4), 1);
  EXPECT_DOUBLE_EQ(learningRate(schedule, 50), 1);
}

TEST(LearningRate, RisesInARangeTest) {
  Schedule schedule{.type = "LRRangeTest", .least = 2, .slope = 3, .length = 4};
  EXPECT_EQ(learningRate(schedule, 0), 2);
  EXPECT_EQ(learningRate(schedule, 6), 2 * (1 + 3 * 1.5));
  schedule.stairs = true;
  EXPECT_EQ(learningRate(schedule, 6), 8);
}

TEST(LearningRate, RunsThroughOneCycle) {
  const Cycle cycle{.up = 4, .down = 2, .decay = 2};
  Schedule schedule{.type = "OneCycle", .least = 1, .most = 3, .slope = 1, .cycle = cycle};
  EXPECT_DOUBLE_EQ(learningRate(schedule, 2), 2);
  EXPECT_DOUBLE_EQ(learningRate(schedule, 4), 3);
  EXPECT_NEAR(learningRate(schedule, 5), 2, 1e-15);
  EXPECT_DOUBLE_EQ(learningRate(schedule, 8), 0.5);
  schedule.cycle.upStairs = 2;
  EXPECT_DOUBLE_EQ(learningRate(schedule, 3), 2);
  const CycledMomentum momentum{.on = true, .least = 0.5, .most = 0.75, .slope = 0.5, .cycle = cycle};
  EXPECT_DOUBLE_EQ(cycledMomentum(momentum, 0), 0.5);
  EXPECT_DOUBLE_EQ(cycledMomentum(momentum, 2), 0.625);
  EXPECT_DOUBLE_EQ(cycledMomentum(momentum, 8), 0.75 * 1.5);
}

TEST(LearningRate, IsSampledAroundItsEdges) {
  const std::vector<int64_t> updates = sampledUpdates({.type = "WarmupDecayLR", .warmup = 50, .total = 700});
  for (const int64_t wanted : {0, 1, 25, 49, 50, 51, 52, 350, 375, 699, 700, 701, 702})
    EXPECT_TRUE(std::ranges::find(updates, wanted) != updates.end()) << wanted;
  EXPECT_TRUE(std::ranges::is_sorted(updates));
}

} // namespace
} // namespace ds::sources
