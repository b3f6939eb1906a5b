//===- RecomputeFrontierTest.cpp - against brute force --------------------===//
#include "compiler/scheduling/Recompute.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <gtest/gtest.h>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace ds::scheduling {
namespace {

using Sums = std::pair<int64_t, int64_t>; // bytes, time

/// x -> product -> activation -> product -> y, of which the backward reads x, both inputs of the second product and of
/// the activation.
RecomputeProblem mlp() {
  RecomputeProblem problem;
  problem.values = {{0, -1, true}, {400, 0, true}, {400, 1, true}, {0, -1, false}};
  problem.ops = {{50, true, {0}}, {1, true, {1}}, {50, true, {2}}};
  return problem;
}

TEST(RecomputeFrontier, RepeatsWhatIsCheapFirst) {
  const RecomputeProblem problem = mlp();
  ASSERT_EQ(problem.check(), std::nullopt);
  const std::vector<RecomputeChoice> expected = {{{0, 0, 0}, 800, 0}, {{0, 1, 0}, 400, 1}, {{1, 1, 0}, 0, 51}};
  EXPECT_EQ(recomputeFrontier(problem), expected);
}

TEST(RecomputeFrontier, KeepsWhatMayNotBeRepeated) {
  RecomputeProblem problem = mlp();
  problem.ops[0].mayRepeat = false;
  EXPECT_EQ(recomputeFrontier(problem).back(), (RecomputeChoice{{0, 1, 0}, 400, 1}));
  problem.ops[1].mayRepeat = false;
  EXPECT_EQ(recomputeFrontier(problem).size(), 1U);
}

TEST(RecomputeFrontier, PaysForWhatIsKeptToBeReadAgain) {
  RecomputeProblem problem = mlp();
  problem.values[0] = {300, -1, false}; // the backward reads it for the first product alone
  const std::vector<RecomputeChoice> expected = {{{0, 0, 0}, 800, 0}, {{0, 1, 0}, 400, 1}, {{1, 1, 0}, 300, 51}};
  EXPECT_EQ(recomputeFrontier(problem), expected);
  problem.values[0].bytes = 400; // no less than what it would free
  EXPECT_EQ(recomputeFrontier(problem).back(), expected[1]);
}

TEST(RecomputeFrontier, RepeatsForNothingButAUse) {
  RecomputeProblem problem = mlp();
  problem.values[2].needed = false; // nobody reads the activation
  for (const RecomputeChoice &choice : recomputeFrontier(problem)) {
    EXPECT_EQ(verify(problem, choice), std::nullopt);
    EXPECT_EQ(choice.again[1], 0);
  }
}

TEST(RecomputeFrontier, VerifyRefuses) {
  RecomputeProblem problem = mlp();
  EXPECT_NE(verify(problem, {{0, 1}, 400, 1}), std::nullopt);
  EXPECT_NE(verify(problem, {{0, 1, 0}, 400, 2}), std::nullopt);
  EXPECT_NE(verify(problem, {{0, 1, 0}, 0, 1}), std::nullopt);
  EXPECT_NE(verify(problem, choiceOf(problem, {0, 0, 1})), std::nullopt) << "for nothing";
  problem.ops[1].mayRepeat = false;
  EXPECT_NE(verify(problem, {{0, 1, 0}, 400, 1}), std::nullopt);
  problem.ops[0].operands = {1};
  EXPECT_NE(problem.check(), std::nullopt);
}

/// A random layer, each op with one or two results and any earlier operands.
RecomputeProblem randomLayer(std::mt19937 &random, int32_t maxOps) {
  const auto below = [&](int64_t n) { return std::uniform_int_distribution<int64_t>(0, n - 1)(random); };
  RecomputeProblem problem;
  problem.values.push_back({below(50), -1, below(2) == 0});
  const auto ops = int32_t(1 + below(maxOps));
  for (int32_t i = 0; i < ops; ++i) {
    RecomputeProblem::Op op{below(6) == 0 ? 0 : below(40), below(8) != 0, {}};
    const auto known = int64_t(problem.values.size());
    for (int64_t operand = 0; operand < known; ++operand)
      if (below(known) < 2)
        op.operands.push_back(int32_t(operand));
    problem.ops.push_back(op);
    for (int64_t result = below(3) == 0 ? 2 : 1; result > 0; --result)
      problem.values.push_back({below(60), below(7) == 0 ? -1 : i, below(2) == 0});
  }
  return problem;
}

/// Bytes and time of every way to repeat ops that is allowed and repeats none for nothing.
std::vector<Sums> allChoices(const RecomputeProblem &problem) {
  std::vector<Sums> all;
  for (uint32_t mask = 0; mask < 1U << problem.ops.size(); ++mask) {
    std::vector<char> again(problem.ops.size());
    for (size_t i = 0; i < again.size(); ++i)
      again[i] = char(mask >> i & 1U);
    const RecomputeChoice choice = choiceOf(problem, std::move(again));
    if (!verify(problem, choice))
      all.emplace_back(choice.bytes, choice.time);
  }
  return all;
}

TEST(RecomputeFrontier, IsTheHullOfAllChoices) {
  std::mt19937 random(7);
  size_t bends = 0;
  for (int instance = 0; instance < 2000; ++instance) {
    const RecomputeProblem problem = randomLayer(random, 7);
    ASSERT_EQ(problem.check(), std::nullopt);
    const std::vector<Sums> all = allChoices(problem);
    const std::vector<RecomputeChoice> frontier = recomputeFrontier(problem);
    for (size_t k = 0; k < frontier.size(); ++k) {
      ASSERT_EQ(verify(problem, frontier[k]), std::nullopt);
      if (k == 0)
        continue;
      const RecomputeChoice &from = frontier[k - 1], &to = frontier[k];
      for (size_t i = 0; i < to.again.size(); ++i)
        ASSERT_LE(from.again[i], to.again[i]) << "each repeats all that the one before repeats";
      // No choice lies below the line through two neighbours.
      const int64_t bytePrice = to.time - from.time, timePrice = from.bytes - to.bytes;
      ASSERT_GT(timePrice, 0);
      for (const auto &[bytes, time] : all)
        ASSERT_GE(bytes * bytePrice + time * timePrice, from.bytes * bytePrice + from.time * timePrice);
      if (k >= 2) {
        ++bends;
        const RecomputeChoice &before = frontier[k - 2];
        ASSERT_GT((before.bytes - from.bytes) * (to.time - from.time),
                  (from.bytes - to.bytes) * (from.time - before.time));
      }
    }
    ASSERT_EQ(frontier.back().bytes, std::min_element(all.begin(), all.end())->first);
  }
  EXPECT_GT(bends, 500U) << "the instances say something";
}

/// The least time of three layers within a budget, over all their choices.
int64_t minTime(const std::vector<std::vector<Sums>> &layers, int64_t budget) {
  int64_t least = INT64_MAX;
  for (const Sums &a : layers[0])
    for (const Sums &b : layers[1])
      for (const Sums &c : layers[2])
        if (a.first + b.first + c.first <= budget)
          least = std::min(least, a.second + b.second + c.second);
  return least;
}

TEST(RecomputeSteps, TakeTheLeastTimeForTheirBytes) {
  std::mt19937 random(11);
  for (int instance = 0; instance < 200; ++instance) {
    std::vector<std::vector<Sums>> all;
    std::vector<std::vector<RecomputeChoice>> frontiers;
    Sums sums = {0, 0};
    for (int layer = 0; layer < 3; ++layer) {
      const RecomputeProblem problem = randomLayer(random, 4);
      all.push_back(allChoices(problem));
      frontiers.push_back(recomputeFrontier(problem));
      sums.first += frontiers.back()[0].bytes;
    }
    std::vector<int32_t> at(3, 0);
    for (const RecomputeStep &step : recomputeSteps(frontiers)) {
      ASSERT_EQ(step.choice, ++at[size_t(step.layer)]) << "one step of a layer after the other";
      const auto &frontier = frontiers[size_t(step.layer)];
      const Sums before = sums;
      sums.first += frontier[size_t(step.choice)].bytes - frontier[size_t(step.choice) - 1].bytes;
      sums.second += frontier[size_t(step.choice)].time - frontier[size_t(step.choice) - 1].time;
      ASSERT_EQ(minTime(all, sums.first), sums.second) << "exact at its steps";
      ASSERT_LE(before.second, minTime(all, (before.first + sums.first) / 2)) << "else at most one step more";
    }
  }
}

TEST(RecomputeSteps, EarlierLayersFirst) {
  const std::vector<std::vector<RecomputeChoice>> frontiers(3, recomputeFrontier(mlp()));
  const std::vector<RecomputeStep> expected = {{0, 1}, {1, 1}, {2, 1}, {0, 2}, {1, 2}, {2, 2}};
  EXPECT_EQ(recomputeSteps(frontiers), expected);
}

TEST(RecomputeFrontier, TakesALayerOfTenThousandOps) {
  RecomputeProblem problem;
  problem.values.push_back({1, -1, false});
  for (int32_t i = 0; i < 10'000; ++i) {
    problem.ops.push_back({1 + i % 7, true, {i}});
    problem.values.push_back({100 + i % 11, i, i % 2 == 0});
  }
  for (const RecomputeChoice &choice : recomputeFrontier(problem))
    EXPECT_EQ(verify(problem, choice), std::nullopt);
}

} // namespace
} // namespace ds::scheduling
