//===- VerifyScheduleTest.cpp - a broken order is found -------------------===//
#include "compiler/scheduling/PipelineSchedule.h"

#include <cstddef>
#include <cstdint>
#include <gtest/gtest.h>
#include <string>
#include <utility>
#include <vector>

namespace ds::scheduling {
namespace {

// rank 0: F0 F1 B0 F2 B1 B2 at 0 1 4 6 7 10; rank 1: F0 B0 F1 B1 F2 B2 at 1 2 4 5 7 8.
const ScheduleProblem p{PipelineSchedule::OneFOneB, 2, 1, 3, 1, 2, 0};

std::string fault(const TaskOrder &order) { return verify(p, order).value_or("nothing"); }

TEST(VerifySchedule, AcceptsTheOrder) { EXPECT_EQ(fault(schedulePipeline(p)), "nothing"); }

TEST(VerifySchedule, MissingTask) {
  TaskOrder order = schedulePipeline(p);
  order.byRank[0].pop_back();
  order.begin[0].pop_back();
  EXPECT_EQ(fault(order), "the backward of micro-batch 2 through stage 0 is missing");
}

TEST(VerifySchedule, TaskTwice) {
  TaskOrder order = schedulePipeline(p);
  order.byRank[0][1] = order.byRank[0][0];
  EXPECT_EQ(fault(order), "the forward of micro-batch 0 through stage 0 stands in the order twice");
}

TEST(VerifySchedule, WrongRank) {
  TaskOrder order = schedulePipeline(p);
  std::swap(order.byRank[0][0], order.byRank[1][0]);
  EXPECT_EQ(fault(order), "the forward of micro-batch 0 through stage 1 is on rank 0, not 1");
}

TEST(VerifySchedule, UnknownTask) {
  TaskOrder order = schedulePipeline(p);
  order.byRank[0][0].microbatch = 3;
  EXPECT_EQ(fault(order), "rank 0 has a task at place 0 that the problem has not");
  order.byRank[0][0] = {TaskKind::Weight, 0, 0};
  EXPECT_EQ(fault(order), "rank 0 has a task at place 0 that the problem has not");
}

TEST(VerifySchedule, TwoTasksAtOnce) {
  TaskOrder order = schedulePipeline(p);
  order.begin[0][1] = 0.5;
  EXPECT_EQ(fault(order), "the forward of micro-batch 1 through stage 0 begins before the end of the forward of "
                          "micro-batch 0 through stage 0 on rank 0");
}

TEST(VerifySchedule, BeforeWhatItNeeds) {
  TaskOrder order = schedulePipeline(p);
  order.begin[1][0] = 0;
  EXPECT_EQ(fault(order), "the forward of micro-batch 0 through stage 1 begins before the end of the forward of "
                          "micro-batch 0 through stage 0");
}

TEST(VerifySchedule, MicrobatchesOutOfOrder) {
  TaskOrder order = schedulePipeline(p);
  std::swap(order.byRank[0][0], order.byRank[0][1]);
  EXPECT_EQ(fault(order), "the forward of micro-batch 1 through stage 0 begins before the end of the forward of "
                          "micro-batch 0 through stage 0");
}

TEST(VerifySchedule, TooManyInFlight) {
  TaskOrder order = schedulePipeline({PipelineSchedule::GPipe, 2, 1, 3, 1, 2, 0});
  EXPECT_EQ(fault(order),
            "with the forward of micro-batch 2 through stage 0 rank 0 has 3 micro-batches in flight; 1f1b allows 2");
}

TEST(VerifySchedule, FalseFigures) {
  TaskOrder order = schedulePipeline(p);
  order.inFlight[1] = 2;
  EXPECT_EQ(fault(order), "stage 1 has 1 micro-batches in flight, not 2");
  order = schedulePipeline(p);
  order.length = 11;
  EXPECT_EQ(fault(order), "the order is 12.000000 seconds long, not 11.000000");
  order = schedulePipeline(p);
  order.bubbleFraction = 0;
  EXPECT_EQ(fault(order), "the bubble is 0.250000 of the step, not 0.000000");
}

} // namespace
} // namespace ds::scheduling
