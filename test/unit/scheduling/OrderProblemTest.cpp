//===- OrderProblemTest.cpp - orders verified, and against all orders -----===//
#include "compiler/scheduling/OrderProblem.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <random>

namespace ds::scheduling {
namespace {

std::vector<int64_t> identity(const OrderProblem &problem) {
  std::vector<int64_t> order(size_t(problem.commands));
  std::iota(order.begin(), order.end(), int64_t(0));
  return order;
}

/// A graph of up to `most` commands: each makes a buffer that some later ones read, in an order that works.
OrderProblem randomProblem(uint32_t seed, int64_t most) {
  std::mt19937 random(seed);
  const auto below = [&](int64_t n) { return int64_t(random() % uint32_t(n)); };
  OrderProblem problem;
  problem.commands = 1 + below(most);
  for (int64_t command = 0; command < problem.commands; ++command) {
    OrderProblem::Buffer buffer{below(8), {command}, false, below(8) == 0};
    for (int64_t reader = command + 1; reader < problem.commands; ++reader)
      if (below(3) == 0) {
        buffer.users.push_back(reader);
        problem.edges.push_back({command, reader});
      }
    problem.buffers.push_back(buffer);
    if (below(4) == 0)
      problem.buffers.push_back({below(8), {command}, true, false});
  }
  return problem;
}

int64_t minPeak(const OrderProblem &problem) {
  std::vector<int64_t> order = identity(problem);
  int64_t least = std::numeric_limits<int64_t>::max();
  do {
    if (!problem.verify(order))
      least = std::min(least, problem.peakBytes(order));
  } while (std::next_permutation(order.begin(), order.end()));
  return least;
}

// What is needed once, and takes bytes away, comes before the buffer that it need not stand beside is born.
TEST(OrderForMemory, LargeTemporariesStandApart) {
  OrderProblem problem;
  problem.commands = 4;
  problem.buffers = {{100, {0, 1}, false, false}, {10, {1, 3}, false, false}, {50, {2}, true, false}};
  problem.edges = {{0, 1}, {1, 3}};
  ASSERT_EQ(problem.check(), std::nullopt);
  EXPECT_EQ(problem.peakBytes(identity(problem)), 160);
  const std::vector<int64_t> order = orderForMemory(problem);
  EXPECT_EQ(order, (std::vector<int64_t>{2, 0, 1, 3}));
  EXPECT_EQ(problem.peakBytes(order), 110);
}

TEST(OrderForMemory, KeepsAnOrderThatIsBest) {
  OrderProblem problem;
  EXPECT_EQ(orderForMemory(problem), std::vector<int64_t>{});
  problem.commands = 3;
  problem.buffers = {{8, {0, 2}, false, false}, {4, {1}, false, false}};
  problem.edges = {{0, 1}, {1, 2}};
  EXPECT_EQ(orderForMemory(problem), identity(problem));
}

// Many equal peaks, one behind the other: all must go before the peak is lower.
TEST(OrderForMemory, LowersEveryPeak) {
  OrderProblem problem;
  constexpr int64_t layers = 300;
  for (int64_t layer = 0; layer < layers; ++layer) {
    const int64_t first = problem.commands;
    problem.commands += 3;
    problem.buffers.push_back({64, {first, first + 2}, false, false}); // of the first, for the third
    problem.buffers.push_back({32, {first + 1}, true, false});         // the second is its last reader
    problem.edges.push_back({first, first + 2});
    if (layer > 0)
      problem.edges.push_back({first - 1, first + 1});
  }
  const int64_t before = problem.peakBytes(identity(problem));
  const std::vector<int64_t> order = orderForMemory(problem);
  EXPECT_EQ(problem.verify(order), std::nullopt);
  EXPECT_EQ(before, layers * 32 + 64);
  EXPECT_LT(problem.peakBytes(order), before);
}

// Never worse than the given order, never better than the best of all, and as good as that most of the time.
TEST(OrderForMemory, AgainstAllOrders) {
  int64_t improvable = 0, closed = 0; // bytes above the least, before and after
  for (uint32_t seed = 1; seed <= 3000; ++seed) {
    const OrderProblem problem = randomProblem(seed, 7);
    ASSERT_EQ(problem.check(), std::nullopt) << "seed " << seed;
    const std::vector<int64_t> order = orderForMemory(problem);
    ASSERT_EQ(problem.verify(order), std::nullopt) << "seed " << seed;
    ASSERT_EQ(orderForMemory(problem), order) << "seed " << seed;
    const int64_t before = problem.peakBytes(identity(problem)), after = problem.peakBytes(order),
                  least = minPeak(problem);
    ASSERT_LE(after, before) << "seed " << seed;
    ASSERT_GE(after, least) << "seed " << seed;
    improvable += before - least;
    closed += before - after;
  }
  EXPECT_GT(improvable, 0);
  std::printf("%.1f %% of what the best orders save\n", 100 * double(closed) / double(improvable));
  EXPECT_GT(closed * 10, improvable * 8);
}

TEST(OrderForMemory, VerifiesLargeRandomGraphs) {
  for (uint32_t seed = 1; seed <= 20; ++seed) {
    const OrderProblem problem = randomProblem(seed, 200);
    const std::vector<int64_t> order = orderForMemory(problem);
    ASSERT_EQ(problem.verify(order), std::nullopt) << "seed " << seed;
    ASSERT_LE(problem.peakBytes(order), problem.peakBytes(identity(problem))) << "seed " << seed;
  }
}

// At each peak there is a move for each branch; the search ends all the same.
TEST(OrderForMemory, EndsWithThousandsOfBranches) {
  constexpr int64_t branches = 3000;
  OrderProblem problem;
  problem.commands = 2 * branches + 1;
  for (int64_t branch = 0; branch < branches; ++branch) {
    const int64_t made = branch, read = 2 * branches - branch;
    problem.buffers.push_back({1, {made, read}, false, false});
    problem.edges.push_back({made, read});
  }
  ASSERT_EQ(problem.check(), std::nullopt);
  const std::vector<int64_t> order = orderForMemory(problem);
  EXPECT_EQ(problem.verify(order), std::nullopt);
  EXPECT_LE(problem.peakBytes(order), problem.peakBytes(identity(problem)));
}

TEST(OrderProblem, ChecksItsInput) {
  const auto reason = [](OrderProblem problem) { return problem.check().value_or(""); };
  EXPECT_EQ(reason({2, {{0, 1}}, {{4, {0, 1}, false, false}}}), "");
  EXPECT_EQ(reason({2, {{1, 0}}, {}}), "edge 1 to 0 does not lead forwards among 2 commands");
  EXPECT_EQ(reason({2, {{1, 2}}, {}}), "edge 1 to 2 does not lead forwards among 2 commands");
  EXPECT_EQ(reason({2, {}, {{-4, {0}, false, false}}}), "buffer 0 has a negative size");
  EXPECT_EQ(reason({2, {}, {{4, {}, false, false}}}), "buffer 0 is used by no command");
  EXPECT_EQ(reason({2, {}, {{4, {1, 0}, false, false}}}), "buffer 0 has users that do not ascend among 2 commands");
  EXPECT_EQ(reason({2, {}, {{4, {2}, false, false}}}), "buffer 0 has users that do not ascend among 2 commands");
  EXPECT_EQ(reason({-1, {}, {}}), "-1 commands");
  const int64_t large = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(reason({1, {}, {{large, {0}, false, false}, {1, {0}, false, false}}}),
            "the buffers up to 1 together are larger than any address space");
}

TEST(OrderProblem, VerifiesOrders) {
  const OrderProblem problem{3, {{0, 2}}, {}};
  EXPECT_EQ(problem.verify(std::vector<int64_t>{1, 0, 2}), std::nullopt);
  EXPECT_EQ(problem.verify(std::vector<int64_t>{2, 1, 0}), "command 0 comes after 2, which needs it");
  EXPECT_EQ(problem.verify(std::vector<int64_t>{0, 1}), "2 places for 3 commands");
  EXPECT_EQ(problem.verify(std::vector<int64_t>{0, 0, 1}),
            "place 1 has command 0, which is none or has a place already");
}

} // namespace
} // namespace ds::scheduling
