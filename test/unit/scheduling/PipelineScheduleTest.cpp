//===- PipelineScheduleTest.cpp - orders, bubbles and micro-batches in flight -===//
#include "compiler/scheduling/PipelineSchedule.h"

#include <algorithm>
#include <cstdint>
#include <gtest/gtest.h>
#include <optional>
#include <string>
#include <vector>

namespace ds::scheduling {
namespace {

struct Times {
  double forward, backward, weight;
};

ScheduleProblem problem(PipelineSchedule kind, int64_t ranks, int64_t chunks, int64_t microbatches,
                        Times times = {1, 2, 0}) {
  return {kind, ranks, chunks, microbatches, times.forward, times.backward, times.weight};
}

/// The order, which verify() accepts.
TaskOrder verified(const ScheduleProblem &p) {
  EXPECT_EQ(p.check(), std::nullopt);
  TaskOrder order = schedulePipeline(p);
  EXPECT_EQ(verify(p, order), std::nullopt)
      << name(p.kind) << " " << p.ranks << " " << p.chunks << " " << p.microbatches;
  return order;
}

/// "F0 B0" and so on of a rank; with chunks "F0.1" is micro-batch 0 in chunk 1.
std::string printed(const ScheduleProblem &p, int64_t rank) {
  const TaskOrder order = verified(p);
  std::string all;
  for (const PipelineTask &task : order.byRank[size_t(rank)]) {
    all += (all.empty() ? "" : " ") + std::string(1, "FBW"[size_t(task.kind)]) + std::to_string(task.microbatch);
    if (p.chunks > 1)
      all += "." + std::to_string(task.stage / p.ranks);
  }
  return all;
}

TEST(PipelineSchedule, NamesReadBack) {
  EXPECT_EQ(pipelineScheduleNames(),
            (std::vector<std::string_view>{"gpipe", "1f1b", "interleaved", "zb-h1", "accumulate-by-layer"}));
  for (std::string_view each : pipelineScheduleNames())
    EXPECT_EQ(name(pipelineScheduleFromName(each).value()), each);
  EXPECT_EQ(pipelineScheduleFromName("1F1B"), std::nullopt);
}

TEST(PipelineSchedule, OrdersOfTheFirstAndLastRank) {
  EXPECT_EQ(printed(problem(PipelineSchedule::GPipe, 2, 1, 3), 0), "F0 F1 F2 B0 B1 B2");
  EXPECT_EQ(printed(problem(PipelineSchedule::GPipe, 2, 1, 3), 1), "F0 F1 F2 B0 B1 B2");
  EXPECT_EQ(printed(problem(PipelineSchedule::OneFOneB, 3, 1, 4), 0), "F0 F1 F2 B0 F3 B1 B2 B3");
  EXPECT_EQ(printed(problem(PipelineSchedule::OneFOneB, 3, 1, 4), 2), "F0 B0 F1 B1 F2 B2 F3 B3");
  EXPECT_EQ(printed(problem(PipelineSchedule::ZeroBubbleH1, 3, 1, 4, {1, 1, 1}), 0),
            "F0 F1 F2 B0 W0 F3 B1 W1 B2 W2 B3 W3");
  EXPECT_EQ(printed(problem(PipelineSchedule::ZeroBubbleH1, 3, 1, 4, {1, 1, 1}), 2),
            "F0 B0 F1 B1 F2 B2 W0 F3 B3 W1 W2 W3");
}

// Megatron's: warm-up of 2 (p-k-1) + (v-1) p forwards, here 2 and 4 of them, then one forward and one backward in turn.
TEST(PipelineSchedule, OrdersOfInterleavedRanks) {
  EXPECT_EQ(printed(problem(PipelineSchedule::Interleaved, 2, 2, 4), 1),
            "F0.0 F1.0 F0.1 B0.1 F1.1 B1.1 F2.0 B0.0 F3.0 B1.0 F2.1 B2.1 F3.1 B3.1 B2.0 B3.0");
  EXPECT_EQ(printed(problem(PipelineSchedule::Interleaved, 2, 2, 2), 0), "F0.0 F1.0 F0.1 F1.1 B0.1 B1.1 B0.0 B1.0");
  EXPECT_EQ(printed(problem(PipelineSchedule::Interleaved, 1, 2, 2), 0), "F0.0 F0.1 B0.1 F1.0 B0.0 F1.1 B1.1 B1.0");
}

TEST(PipelineSchedule, BubbleOfGPipeAndOneFOneB) {
  for (PipelineSchedule kind : {PipelineSchedule::GPipe, PipelineSchedule::OneFOneB})
    for (int64_t p = 1; p <= 9; ++p)
      for (int64_t m : {1, 2, 3, 4, 7, 8, 9, 16, 33})
        for (Times times : {Times{1, 2, 0}, Times{1, 1, 0}, Times{3, 1, 0}, Times{0.1, 0.7, 0}})
          EXPECT_NEAR(verified(problem(kind, p, 1, m, times)).bubbleFraction, double(p - 1) / double(m + p - 1), 1e-12)
              << name(kind) << " " << p << " ranks, " << m << " micro-batches";
}

TEST(PipelineSchedule, BubbleOfInterleaved) {
  for (int64_t p = 1; p <= 6; ++p)
    for (int64_t v = 2; v <= 4; ++v)
      for (int64_t rounds = 1; rounds <= 4; ++rounds)
        for (Times times : {Times{1, 2, 0}, Times{1, 1, 0}, Times{3, 1, 0}, Times{0.1, 0.7, 0}}) {
          const int64_t m = rounds * p;
          EXPECT_NEAR(verified(problem(PipelineSchedule::Interleaved, p, v, m, times)).bubbleFraction,
                      double(p - 1) / double(v * m + p - 1), 1e-12)
              << p << " ranks, " << v << " chunks, " << m << " micro-batches";
        }
}

// The paper's formula, where the weight gradients take no longer than the forward and the rest of the backward.
TEST(PipelineSchedule, BubbleOfZeroBubbleH1) {
  for (int64_t p = 1; p <= 9; ++p)
    for (int64_t m : {p, p + 1, 2 * p - 1, 2 * p, 4 * p + 3})
      for (Times times :
           {Times{1, 1, 1}, Times{2, 2, 1}, Times{1, 2, 1}, Times{2, 1, 1}, Times{3, 4, 2}, Times{0.3, 0.1, 0.1}}) {
        const auto &[f, b, w] = times;
        const double bubble = double(p - 1) * (f + b - w), work = double(m) * (f + b + w);
        EXPECT_NEAR(verified(problem(PipelineSchedule::ZeroBubbleH1, p, 1, m, times)).bubbleFraction,
                    bubble / (work + bubble), 1e-12)
            << p << " ranks, " << m << " micro-batches, " << f << " " << b << " " << w;
      }
}

TEST(PipelineSchedule, BubbleOfZeroBubbleH1WithLongWeightGradients) {
  for (int64_t p = 1; p <= 9; ++p)
    for (int64_t m : {p, p + 1, 4 * p + 3})
      for (Times times : {Times{1, 1, 2}, Times{2, 1, 2}, Times{1, 2, 2}, Times{10, 9, 11}}) {
        const auto &[f, b, w] = times;
        const double bubble = double(p - 1) * std::max({f + b - w, f, b}), work = double(m) * (f + b + w);
        EXPECT_NEAR(verified(problem(PipelineSchedule::ZeroBubbleH1, p, 1, m, times)).bubbleFraction,
                    bubble / (work + bubble), 1e-12);
      }
}

TEST(PipelineSchedule, InFlight) {
  for (int64_t p = 1; p <= 8; ++p)
    for (int64_t m : {1, 2, 5, 8, 24})
      for (int64_t k = 0; k < p; ++k) {
        EXPECT_EQ(verified(problem(PipelineSchedule::GPipe, p, 1, m)).inFlight[size_t(k)], m);
        EXPECT_EQ(verified(problem(PipelineSchedule::OneFOneB, p, 1, m)).inFlight[size_t(k)], std::min(m, p - k));
        EXPECT_EQ(verified(problem(PipelineSchedule::ZeroBubbleH1, p, 1, m, {1, 1, 1})).inFlight[size_t(k)],
                  std::min(m, p));
      }
  // Rank 0 runs F0.0 F1.0 F0.1 F1.1 F2.0 B0.1 F3.0 B1.1 F2.1 B0.0 ..., rank 1 as above.
  EXPECT_EQ(verified(problem(PipelineSchedule::Interleaved, 2, 2, 4)).inFlight, (std::vector<int64_t>{4, 3, 2, 1}));
}

// A pipeline of one rank computes all the time.
TEST(PipelineSchedule, OneRankNeverWaits) {
  for (PipelineSchedule kind : {PipelineSchedule::GPipe, PipelineSchedule::OneFOneB, PipelineSchedule::ZeroBubbleH1})
    EXPECT_EQ(verified(problem(kind, 1, 1, 5, {1, 2, 1})).bubbleFraction, 0);
}

// All micro-batches of a chunk are in flight before the next chunk begins, and none waits.
TEST(PipelineSchedule, OrderByLayer) {
  const ScheduleProblem layers = problem(PipelineSchedule::AccumulateByLayer, 1, 3, 2);
  EXPECT_EQ(printed(layers, 0), "F0.0 F1.0 F0.1 F1.1 F0.2 F1.2 B0.2 B1.2 B0.1 B1.1 B0.0 B1.0");
  EXPECT_EQ(verified(layers).inFlight, (std::vector<int64_t>{2, 2, 2}));
  EXPECT_EQ(verified(layers).bubbleFraction, 0);
  EXPECT_EQ(printed(problem(PipelineSchedule::AccumulateByLayer, 1, 1, 2), 0), "F0 F1 B0 B1");
  verified(problem(PipelineSchedule::AccumulateByLayer, 1, 80, 64));
}

// One rank is twice as slow: the others wait for it, and the step takes its work and the way there and back.
TEST(PipelineSchedule, UnequalCosts) {
  const ScheduleProblem p = problem(PipelineSchedule::OneFOneB, 2, 1, 4, {1, 2, 0});
  const std::optional<Timeline> timeline = simulate(p, verified(p).byRank, {{1, 2}, {2, 4}, {}});
  ASSERT_TRUE(timeline);
  EXPECT_DOUBLE_EQ(timeline->length, 1 + 4 * (2 + 4) + 2);
  EXPECT_DOUBLE_EQ(timeline->bubbleFraction, 1 - (4 * 3 + 4 * 6) / (2.0 * 27));
}

TEST(PipelineSchedule, AnOrderThatWaitsForItselfHasNoTimeline) {
  const ScheduleProblem p = problem(PipelineSchedule::OneFOneB, 2, 1, 2);
  TaskOrder order = verified(p);
  std::reverse(order.byRank[1].begin(), order.byRank[1].end());
  EXPECT_EQ(simulate(p, order.byRank, {{1, 1}, {1, 1}, {}}), std::nullopt);
}

TEST(PipelineSchedule, RefusesWhatMakesNoSense) {
  EXPECT_EQ(
      problem(PipelineSchedule::Interleaved, 4, 2, 6).check(),
      "the schedule interleaved takes micro-batches in groups of its 4 ranks, and 6 is not divisible by 4; 8 would be");
  EXPECT_EQ(problem(PipelineSchedule::Interleaved, 4, 1, 8).check(),
            "the schedule interleaved needs at least 2 chunks a rank, not 1; with 1 it is 1f1b");
  EXPECT_EQ(problem(PipelineSchedule::ZeroBubbleH1, 4, 2, 8).check(),
            "the schedule zb-h1 runs 1 chunk a rank, not 2; interleaved runs several");
  EXPECT_EQ(
      problem(PipelineSchedule::AccumulateByLayer, 2, 2, 8).check(),
      "the schedule accumulate-by-layer runs on 1 rank along the pipe, not 2; the other schedules run on several");
  EXPECT_EQ(problem(PipelineSchedule::GPipe, 4, 1, 0).check(),
            "a pipeline of 4 ranks, 1 chunks and 0 micro-batches has nothing to run; each must be at least 1");
  EXPECT_EQ(problem(PipelineSchedule::GPipe, 0, 1, 1).check(),
            "a pipeline of 0 ranks, 1 chunks and 1 micro-batches has nothing to run; each must be at least 1");
  EXPECT_EQ(
      problem(PipelineSchedule::OneFOneB, 1'000, 1, 1'000'000'000'000'000'000).check(),
      "1000000000000000000 micro-batches through 1000 x 1 stages are more than the 10000000 forwards that a schedule "
      "may hold; fewer micro-batches fit");
  EXPECT_EQ(problem(PipelineSchedule::GPipe, 2, 1, 1, {1, -1, 0}).check(),
            "a task takes -1.000000 seconds; it must be a number of at least 0");
}

// Fewer micro-batches than ranks are no error, but for interleaved, which takes them in groups.
TEST(PipelineSchedule, FewMicrobatches) {
  for (PipelineSchedule kind : {PipelineSchedule::GPipe, PipelineSchedule::OneFOneB, PipelineSchedule::ZeroBubbleH1})
    for (int64_t m = 1; m < 8; ++m)
      verified(problem(kind, 8, 1, m, {1, 1, 1}));
}

TEST(PipelineSchedule, ManyRanksAndMicrobatches) {
  EXPECT_EQ(verified(problem(PipelineSchedule::OneFOneB, 64, 1, 512)).inFlight[0], 64);
  EXPECT_EQ(verified(problem(PipelineSchedule::ZeroBubbleH1, 64, 1, 512, {1, 1, 1})).inFlight[63], 64);
  verified(problem(PipelineSchedule::Interleaved, 64, 4, 512));
}

} // namespace
} // namespace ds::scheduling
