//===- RecomputeStepsTest.cpp - keep, again or away, against brute force --===//
#include "compiler/scheduling/Recompute.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <gtest/gtest.h>
#include <map>
#include <optional>
#include <random>
#include <utility>
#include <vector>

namespace ds::scheduling {
namespace {

using Sums = std::pair<int64_t, int64_t>; // bytes, time
constexpr int64_t plenty = 1 << 20;

/// A layer of one op whose result can be made again, and one of two such ops.
const std::vector<RecomputeChoice> cheap = {{{0}, 40, 0}, {{1}, 0, 10}},
                                   dear = {{{0, 0}, 60, 0}, {{0, 1}, 30, 20}, {{1, 1}, 0, 60}};

TEST(RecomputeSteps, WithoutALinkTheCheapestComeFirst) {
  const std::vector<std::vector<RecomputeChoice>> frontiers = {cheap, dear, cheap};
  const std::vector<RecomputeStep> expected = {{0, 1}, {2, 1}, {1, 1}, {1, 2}};
  EXPECT_EQ(recomputeSteps(frontiers), expected);
  EXPECT_EQ(recomputeSteps(frontiers, std::vector<LinkedLayer>(3)), expected);
}

TEST(RecomputeSteps, WhatTheLinkTakesIsNotMadeAgain) {
  const std::vector<std::vector<RecomputeChoice>> frontiers = {cheap, dear, cheap};
  // The link takes all of the first layer, and nothing of the others: they come first, though the first is as cheap.
  const std::vector<LinkedLayer> links = {{0, 140}, {0, 0}, {0, 0}};
  const std::vector<RecomputeStep> expected = {{2, 1}, {1, 1}, {1, 2}, {0, 1}};
  EXPECT_EQ(recomputeSteps(frontiers, links), expected);
}

TEST(RecomputeSteps, WhatIsKeptAtTheEndIsMadeAgainThere) {
  // Each layer's bytes leave while it runs but the last's, which 50 fixed bytes are in the way of.
  const std::vector<std::vector<RecomputeChoice>> frontiers(3, cheap);
  const std::vector<LinkedLayer> links = {{0, 120}, {0, 80}, {50, 40}};
  const std::vector<RecomputeStep> steps = recomputeSteps(frontiers, links);
  EXPECT_EQ(steps.front(), (RecomputeStep{2, 1}));
  EXPECT_EQ(keptBytes(links, std::vector<int64_t>{40, 40, 90}), 50);
  EXPECT_EQ(keptBytes(links, std::vector<int64_t>{40, 40, 50}), 10);
}

TEST(RecomputeSteps, VerifyRefuses) {
  const std::vector<LinkedLayer> links = {{0, 100}, {0, 50}};
  const std::vector<int64_t> provided = {80, 60};
  EXPECT_EQ(verifyAway(links, provided, std::vector<int64_t>{50, 50}), std::nullopt);
  EXPECT_NE(verifyAway(links, provided, std::vector<int64_t>{51, 50}), std::nullopt) << "more than the link moves";
  EXPECT_NE(verifyAway(links, provided, std::vector<int64_t>{0, 51}), std::nullopt) << "more than it moves by the end";
  EXPECT_NE(verifyAway(links, provided, std::vector<int64_t>{81, 0}), std::nullopt) << "more than there is";
  EXPECT_NE(verifyAway(links, provided, std::vector<int64_t>{-1, 0}), std::nullopt);
  EXPECT_NE(verifyAway(links, provided, std::vector<int64_t>{0}), std::nullopt);
}

/// A random layer of at most three ops in a chain.
RecomputeProblem randomLayer(std::mt19937 &random) {
  const auto below = [&](int64_t n) { return std::uniform_int_distribution<int64_t>(0, n - 1)(random); };
  RecomputeProblem problem;
  problem.values.push_back({0, -1, false});
  for (auto op = int32_t(0), ops = int32_t(1 + below(3)); op < ops; ++op) {
    problem.ops.push_back({1 + below(12), below(8) != 0, {op}});
    problem.values.push_back({1 + below(4), op, below(3) != 0});
  }
  return problem;
}

/// Three layers and a link, with everything that may become of them.
struct Instance {
  explicit Instance(std::mt19937 &random) {
    for (int layer = 0; layer < 3; ++layer) {
      const RecomputeProblem problem = randomLayer(random);
      frontiers.push_back(recomputeFrontier(problem));
      std::map<int64_t, int64_t> least; // time, by bytes
      for (uint32_t mask = 0; mask < 1U << problem.ops.size(); ++mask) {
        std::vector<char> again(problem.ops.size());
        for (size_t i = 0; i < again.size(); ++i)
          again[i] = char(mask >> i & 1U);
        const RecomputeChoice choice = choiceOf(problem, std::move(again));
        if (!verify(problem, choice)) {
          const auto known = least.try_emplace(choice.bytes, choice.time).first;
          known->second = std::min(known->second, choice.time);
        }
      }
      all.emplace_back(least.begin(), least.end());
      const auto below = [&](int64_t n) { return std::uniform_int_distribution<int64_t>(0, n - 1)(random); };
      links.push_back({below(3), below(8)});
    }
    for (size_t l = links.size() - 1; l-- > 0;)
      links[l].linkBytes += links[l + 1].linkBytes;
  }

  std::vector<int64_t> provided(int64_t a, int64_t b, int64_t c) const {
    return {a + links[0].fixedBytes, b + links[1].fixedBytes, c + links[2].fixedBytes};
  }

  /// Of all ways to let bytes leave, the one that keeps fewest.
  int64_t fewestKept(const std::vector<int64_t> &bytes) const {
    int64_t most = 0;
    for (int64_t a = 0; a <= bytes[0]; ++a)
      for (int64_t b = 0; b <= bytes[1]; ++b)
        for (int64_t c = 0; c <= bytes[2]; ++c)
          if (a + b + c > most && !verifyAway(links, bytes, std::vector<int64_t>{a, b, c}))
            most = a + b + c;
    return bytes[0] + bytes[1] + bytes[2] - most;
  }

  /// The least time with which no more than `room` bytes are kept.
  int64_t minTime(int64_t room) const {
    int64_t least = plenty;
    for (const Sums &a : all[0])
      for (const Sums &b : all[1])
        for (const Sums &c : all[2])
          if (a.second + b.second + c.second < least && fewestKept(provided(a.first, b.first, c.first)) <= room)
            least = a.second + b.second + c.second;
    return least;
  }

  std::vector<std::vector<RecomputeChoice>> frontiers;
  std::vector<std::vector<Sums>> all; // bytes and time of all choices, by layer
  std::vector<LinkedLayer> links;
};

TEST(RecomputeSteps, KeepTheFewestBytesThatTheLinkAllows) {
  std::mt19937 random(3);
  for (int number = 0; number < 300; ++number) {
    const Instance instance(random);
    for (const Sums &a : instance.all[0])
      for (const Sums &b : instance.all[1])
        for (const Sums &c : instance.all[2]) {
          const std::vector<int64_t> bytes = instance.provided(a.first, b.first, c.first);
          ASSERT_EQ(keptBytes(instance.links, bytes), instance.fewestKept(bytes));
        }
  }
}

/// Of all ways to make values again and to let bytes leave.
TEST(RecomputeSteps, TakeTheLeastTimeBesideALink) {
  std::mt19937 random(5);
  int steps = 0, exact = 0, withoutLink = 0;
  for (int number = 0; number < 300; ++number) {
    const Instance instance(random);
    std::vector<size_t> taken(3, 0);
    int64_t time = 0, dearest = 0;
    const auto kept = [&] {
      const auto bytesOf = [&](size_t layer) { return instance.frontiers[layer][taken[layer]].bytes; };
      return keptBytes(instance.links, instance.provided(bytesOf(0), bytesOf(1), bytesOf(2)));
    };
    int64_t before = kept();
    for (const RecomputeStep &step : recomputeSteps(instance.frontiers, instance.links)) {
      const auto layer = size_t(step.layer);
      ASSERT_EQ(step.choice, int32_t(++taken[layer])) << "one step of a layer after the other";
      const int64_t takes =
          instance.frontiers[layer][taken[layer]].time - instance.frontiers[layer][taken[layer] - 1].time;
      time += takes;
      dearest = std::max(dearest, takes);
      const int64_t after = kept();
      if (after == before) // the link takes the rest, or what is kept cannot be made again
        break;
      ASSERT_LT(after, before);
      before = after;
      const int64_t least = instance.minTime(after);
      ASSERT_LE(least, time);
      ASSERT_LE(time, least + dearest) << "at most one step too many";
      ++steps;
      exact += time == least;
    }
    withoutLink += recomputeSteps(instance.frontiers) == recomputeSteps(instance.frontiers, instance.links);
  }
  EXPECT_GT(steps, 400);
  EXPECT_GT(exact, steps * 9 / 10);
  EXPECT_LT(withoutLink, 250) << "the instances say something";
}

} // namespace
} // namespace ds::scheduling
