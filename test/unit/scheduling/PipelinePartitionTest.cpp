//===- PipelinePartitionTest.cpp - against brute force --------------------===//
#include "compiler/scheduling/PipelinePartition.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <gtest/gtest.h>
#include <optional>
#include <random>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace ds::scheduling {
namespace {

/// Units of the given times, a byte sent at each cut, nothing else.
PartitionProblem withTimes(const std::vector<double> &seconds, int64_t stages) {
  PartitionProblem problem;
  for (double each : seconds)
    problem.units.push_back({each, 0, 0, 0});
  problem.crossing.assign(seconds.size() + 1, 1);
  problem.stages = stages;
  return problem;
}

std::vector<int64_t> cuts(const PartitionProblem &problem) {
  EXPECT_EQ(problem.check(), std::nullopt);
  const std::optional<Partition> best = partition(problem);
  if (!best)
    return {-1};
  EXPECT_EQ(verify(problem, *best), std::nullopt);
  return best->cuts;
}

/// Tries all cuts, in lexicographic order.
class BruteForce {
public:
  explicit BruteForce(const PartitionProblem &problem) : problem_(problem) {}

  std::optional<Partition> run() {
    extend();
    return best_;
  }

private:
  void extend() {
    const auto units = int64_t(problem_.units.size());
    const int64_t begin = cuts_.empty() ? 0 : cuts_.back(), stage = int64_t(cuts_.size());
    if (stage + 1 == problem_.stages)
      return judge();
    for (int64_t end = begin + 1; end < units; ++end) {
      cuts_.push_back(end);
      extend();
      cuts_.pop_back();
    }
  }

  void judge() {
    Partition candidate{cuts_, 0};
    int64_t begin = 0, sent = 0;
    for (int64_t stage = 0; stage < problem_.stages; ++stage) {
      const bool last = stage + 1 == problem_.stages;
      const int64_t end = last ? int64_t(problem_.units.size()) : cuts_[size_t(stage)];
      candidate.bottleneck = std::max(candidate.bottleneck, stageSeconds(problem_, begin, end));
      sent += last ? 0 : problem_.crossing[size_t(end)];
      begin = end;
    }
    if (verify(problem_, candidate))
      return;
    if (!best_ || std::pair(candidate.bottleneck, sent) < std::pair(best_->bottleneck, sent_)) {
      best_ = candidate;
      sent_ = sent;
    }
  }

  const PartitionProblem &problem_;
  std::vector<int64_t> cuts_;
  std::optional<Partition> best_;
  int64_t sent_ = 0;
};

/// Small whole numbers, so that many partitions are equally good and no sum is rounded.
PartitionProblem randomProblem(std::mt19937 &random, int64_t units, int64_t stages) {
  const auto draw = [&](int64_t low, int64_t high) { return low + int64_t(random() % uint64_t(high - low + 1)); };
  PartitionProblem problem;
  for (int64_t i = 0; i < units; ++i) {
    const int64_t seconds = draw(0, 5), state = draw(0, 4), activation = draw(0, 3);
    problem.units.push_back({double(seconds), state, activation, 0});
  }
  for (int64_t i = 0; i <= units; ++i)
    problem.crossing.push_back(draw(0, 4));
  if (draw(0, 1))
    for (int64_t i = 0; i <= units; ++i)
      problem.mayCut.push_back(draw(0, 3) > 0);
  problem.stages = stages;
  if (draw(0, 1))
    for (int64_t stage = 0; stage < stages; ++stage)
      problem.inFlight.push_back(draw(0, 4));
  problem.memoryBytes = draw(0, 1) ? draw(5, 40) : 0;
  problem.secondsPerByte = double(draw(0, 2)) / 2;
  return problem;
}

TEST(PipelinePartition, BalancesTime) {
  EXPECT_EQ(cuts(withTimes({1, 1, 1, 1, 1, 1}, 3)), (std::vector<int64_t>{2, 4}));
  EXPECT_EQ(cuts(withTimes({1, 2, 3, 4, 5, 6, 7, 8, 9}, 3)), (std::vector<int64_t>{5, 7}));
  EXPECT_EQ(cuts(withTimes({3}, 1)), std::vector<int64_t>{});
}

TEST(PipelinePartition, FewestBytesAmongEquals) {
  PartitionProblem problem = withTimes({0, 4, 0, 0, 4, 0}, 2);
  problem.crossing = {9, 9, 3, 2, 2, 9, 9};
  EXPECT_EQ(cuts(problem), (std::vector<int64_t>{3}));
}

TEST(PipelinePartition, BytesCostTime) {
  PartitionProblem problem = withTimes({3, 1, 2}, 2);
  problem.crossing = {0, 4, 1, 0};
  EXPECT_EQ(cuts(problem), (std::vector<int64_t>{1}));
  problem.secondsPerByte = 1; // 7 seconds against 5
  EXPECT_EQ(cuts(problem), (std::vector<int64_t>{2}));
}

TEST(PipelinePartition, MemoryMovesTheCut) {
  PartitionProblem problem = withTimes({1, 1, 1, 1}, 2);
  for (PartitionProblem::Unit &unit : problem.units)
    unit.activationBytes = 10;
  problem.inFlight = {2, 1};
  problem.memoryBytes = 40;
  EXPECT_EQ(cuts(problem), (std::vector<int64_t>{2}));
  problem.memoryBytes = 30; // 2 x 10 and 3 x 10
  EXPECT_EQ(cuts(problem), (std::vector<int64_t>{1}));
  problem.memoryBytes = 29;
  EXPECT_EQ(partition(problem), std::nullopt);
}

TEST(PipelinePartition, TooFewPositions) {
  PartitionProblem problem = withTimes({1, 1, 1}, 3);
  problem.mayCut = {1, 1, 0, 1};
  EXPECT_EQ(partition(problem), std::nullopt);
  problem.stages = 2;
  EXPECT_EQ(cuts(problem), (std::vector<int64_t>{1}));
  EXPECT_EQ(partition(withTimes({1, 1, 1}, 4)), std::nullopt);
}

TEST(PipelinePartition, OneThousandRandomInstancesAsBruteForce) {
  std::mt19937 random(7);
  int solved = 0;
  for (int i = 0; i < 1000; ++i) {
    const auto units = int64_t(1 + random() % 11), stages = int64_t(1 + random() % 5);
    const PartitionProblem problem = randomProblem(random, units, stages);
    ASSERT_EQ(problem.check(), std::nullopt);
    const std::optional<Partition> best = partition(problem);
    ASSERT_EQ(best, BruteForce(problem).run()) << "instance " << i;
    solved += best.has_value();
  }
  EXPECT_GT(solved, 300); // and those without a solution are many, too
  EXPECT_LT(solved, 900);
}

TEST(PipelinePartition, LargeInstancesVerify) {
  std::mt19937 random(8);
  for (int i = 0; i < 20; ++i) {
    PartitionProblem problem = randomProblem(random, 3000, int64_t(2 + random() % 30));
    problem.memoryBytes = 0;
    for (PartitionProblem::Unit &unit : problem.units)
      unit.seconds *= 0.1;
    const std::optional<Partition> best = partition(problem);
    ASSERT_TRUE(best);
    EXPECT_EQ(verify(problem, *best), std::nullopt);
    double all = 0;
    for (const PartitionProblem::Unit &unit : problem.units)
      all += unit.seconds;
    // No stage need be above the mean by more than a unit and what it sends.
    EXPECT_LT(best->bottleneck, all / double(problem.stages) + 0.5 + 8 * problem.secondsPerByte);
  }
}

TEST(PipelinePartition, TimesOfAnySize) {
  EXPECT_EQ(cuts(withTimes({1e-300, 1e-300, 1e-300, 3e-300}, 2)), (std::vector<int64_t>{3}));
  EXPECT_EQ(cuts(withTimes({1e300, 1e300, 1e300, 3e300}, 2)), (std::vector<int64_t>{3}));
  EXPECT_EQ(cuts(withTimes({0, 0, 0, 0}, 4)), (std::vector<int64_t>{1, 2, 3}));
}

TEST(PipelinePartition, VerifyFindsWhatIsWrong) {
  PartitionProblem problem = withTimes({1, 1, 1, 1}, 2);
  problem.mayCut = {1, 1, 1, 0, 1};
  problem.memoryBytes = 3;
  for (PartitionProblem::Unit &unit : problem.units)
    unit.stateBytes = 1;
  EXPECT_EQ(verify(problem, {{2}, 2}), std::nullopt);
  EXPECT_EQ(verify(problem, {{1, 2}, 2}), "2 cuts do not make 2 stages");
  EXPECT_EQ(verify(problem, {{0}, 4}), "stage 0 is [0, 0) of 4 units");
  EXPECT_EQ(verify(problem, {{4}, 4}), "stage 0 is [0, 4) of 4 units");
  EXPECT_EQ(verify(problem, {{5}, 4}), "stage 0 is [0, 5) of 4 units");
  EXPECT_EQ(verify(problem, {{3}, 3}), "there must be no cut at position 3");
  EXPECT_EQ(verify(problem, {{2}, 3}), "the slowest stage takes 2.000000 seconds, not 3.000000");
  problem.memoryBytes = 2;
  EXPECT_EQ(verify(problem, {{1}, 3}), "stage 1 needs 3 bytes of 2");
}

TEST(PipelinePartition, CheckFindsWhatMakesNoSense) {
  const PartitionProblem sound = withTimes({1, 1}, 2);
  const auto fault = [&](auto change) {
    PartitionProblem problem = sound;
    change(problem);
    return problem.check().value_or("nothing");
  };
  EXPECT_EQ(sound.check(), std::nullopt);
  EXPECT_EQ(fault([](PartitionProblem &p) { p.units.clear(); }),
            "0 units cannot make 2 stages; both must be at least 1");
  EXPECT_EQ(fault([](PartitionProblem &p) { p.stages = 0; }), "2 units cannot make 0 stages; both must be at least 1");
  EXPECT_EQ(fault([](PartitionProblem &p) { p.crossing.pop_back(); }), "2 units have 3 positions, not 2");
  EXPECT_EQ(fault([](PartitionProblem &p) { p.mayCut = {1}; }), "2 units have 3 positions, not 3 and 1");
  EXPECT_EQ(fault([](PartitionProblem &p) { p.inFlight = {1}; }), "1 numbers of micro-batches in flight for 2 stages");
  EXPECT_EQ(fault([](PartitionProblem &p) { p.inFlight = {1, -1}; }), "-1 micro-batches in flight are fewer than none");
  EXPECT_EQ(fault([](PartitionProblem &p) { p.memoryBytes = -1; }), "a memory of -1 bytes is negative");
  EXPECT_EQ(fault([](PartitionProblem &p) { p.units[1].seconds = -1; }), "unit 1 takes -1.000000 seconds");
  EXPECT_EQ(fault([](PartitionProblem &p) { p.units[1].stateBytes = -1; }),
            "unit 1 holds -1 and 0 bytes, negative or more with the others than any address space");
  EXPECT_EQ(fault([](PartitionProblem &p) { p.crossing[1] = -1; }),
            "position 1 sends -1 bytes, negative or more with the others than any address space");
  EXPECT_EQ(fault([](PartitionProblem &p) { p.secondsPerByte = -1; }), "a byte takes -1.000000 seconds");
  EXPECT_EQ(fault([](PartitionProblem &p) {
              p.units[0].activationBytes = int64_t(1) << 40;
              p.inFlight = {int64_t(1) << 40, 1};
            }),
            "1099511627776 micro-batches in flight are larger than any address space");
}

} // namespace
} // namespace ds::scheduling
