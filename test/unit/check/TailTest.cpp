//===- TailTest.cpp - plans whose step may end early ----------------------===//
#include "compiler/check/Check.h"
#include "compiler/check/schedule/ShortenSchedule.h"
#include "test/unit/check/TailPlan.h"
#include "test/unit/runtime/PlanBuilder.h"

#include <gtest/gtest.h>
#include <optional>
#include <string>
#include <vector>

namespace ds::check {
namespace {

using namespace ds::test;
using namespace tails;

#define EXPECT_REFUSED(plan, TEXT)                                                                                     \
  do {                                                                                                                 \
    const std::string said = (plan).verdict();                                                                         \
    EXPECT_NE(said.find(TEXT), std::string::npos) << said;                                                             \
  } while (false)

TEST(Tail, AcceptsAPlanThatIsRight) {
  TailPlan one;
  EXPECT_EQ(one.verdict(), "proven");
  EXPECT_NO_THROW(plan::validatePlan(one.builder.plan));
  EXPECT_EQ(TailPlan(2).verdict(), "proven");
}

constexpr const char *unclipped = "where buffer 30 (asked) is 1: program step",
                     *clipped = "where buffer 30 (asked) is not 1: program step";

TEST(Tail, MakesEveryEarlyUpdateAgain) {
  for (const char *left : {"return a", "write c"}) {
    TailPlan plan;
    plan.drop(TailPlan::redo, left);
    EXPECT_REFUSED(plan, std::string("coverage: ") + clipped);
    EXPECT_REFUSED(plan, "after an update by the factor 1 from its byte 0 on, not ");
    EXPECT_REFUSED(plan, "as the reference program leaves it\n  note: program step, call 2 (routine last");
  }
}

TEST(Tail, RefusesAnUpdateAgainOfNewState) {
  TailPlan plan;
  plan.commandOf(TailPlan::redo, "read a").mutable_copy()->mutable_source()->set_buffer(plan.a.next.buffer);
  EXPECT_REFUSED(plan, "(a momentum on the host) holds a::momentum after an update by the factor 1 from its byte 0 on, "
                       "but the update of a takes a::momentum from its byte 0 on");
  TailPlan early;
  early.commandOf(TailPlan::redo, "sgd a").mutable_kernel()->mutable_operands(0)->set_buffer(early.a.fresh.buffer);
  EXPECT_REFUSED(early, "(a fresh) holds a after an update by the factor 1, neither a parameter nor state");
}

TEST(Tail, MayNotTakeTheFactorForOne) {
  TailPlan plan;
  plan.commandOf(TailPlan::redo, "sgd c").mutable_kernel()->mutable_operands(5)->set_buffer(plan.one.buffer);
  EXPECT_REFUSED(plan, "operand 5 holds the constant 1.000000, but the update of c takes train.clip_factor clip");
}

TEST(Tail, LeavesTheOldStateWhereItIs) {
  TailPlan plan; // in place: where one clips, the old state is gone
  plan.commandOf(TailPlan::last, "write a").mutable_copy()->mutable_target()->set_buffer(plan.a.file.buffer);
  EXPECT_REFUSED(plan, std::string("meaning: ") + clipped);
  EXPECT_REFUSED(plan, "(a momentum on the host) holds a::momentum after an update by the factor 1");
  TailPlan both;
  for (const uint32_t routine : {TailPlan::last, TailPlan::redo})
    both.commandOf(routine, "write a").mutable_copy()->mutable_target()->set_buffer(both.a.file.buffer);
  EXPECT_REFUSED(both, std::string("meaning: ") + clipped);
}

TEST(Tail, WritesTheNewStateWhole) {
  for (const std::vector<uint32_t> &routines :
       {std::vector{TailPlan::last, TailPlan::redo}, std::vector{TailPlan::last}, std::vector{TailPlan::redo}}) {
    TailPlan plan;
    for (const uint32_t routine : routines) {
      proto::CopyCommand &copy = *plan.commandOf(routine, "write a").mutable_copy();
      copy.mutable_source()->set_shape(0, rows - 1);
      copy.mutable_target()->set_shape(0, rows - 1);
    }
    EXPECT_REFUSED(plan, "coverage: where");
    EXPECT_REFUSED(plan, routines.size() == 1 && routines[0] == TailPlan::redo ? "after an update by the factor 1"
                                                                               : "nothing has written");
  }
  TailPlan late; // the two exchange in any case
  late.drop(TailPlan::last, "write a");
  EXPECT_REFUSED(late, std::string("coverage: ") + unclipped);
  EXPECT_REFUSED(late, "(a::momentum next) holds elements of a::momentum whose bytes nothing has written");
}

TEST(Tail, NewStateIsThereForTheNextRunAlone) {
  TailPlan plan;
  plan.commandOf(TailPlan::last, "read a").mutable_copy()->mutable_source()->set_buffer(plan.a.next.buffer);
  EXPECT_REFUSED(plan, "value: where");
  EXPECT_REFUSED(plan, "(a::momentum next), parts of which nothing has written");
  TailPlan read; // an evaluation exchanges nothing
  read.routine(TailPlan::evaluate)
      .mutable_commands(0)
      ->mutable_copy()
      ->mutable_source()
      ->set_buffer(read.a.next.buffer);
  EXPECT_REFUSED(read, "value: program evaluate");
  TailPlan written;
  written.builder.copy(TailPlan::evaluate, written.io, written.looked, written.a.next);
  EXPECT_REFUSED(written, "(a::momentum next); program evaluate leaves weights and state as they are");
}

TEST(Tail, AsksForTheFactor) {
  TailPlan norm;
  norm.commandOf(TailPlan::update, "asked").mutable_kernel()->mutable_operands(0)->set_buffer(norm.norm.buffer);
  EXPECT_REFUSED(
      norm, "meaning: where buffer 30 (asked) is not 1: program step: what its tail asks for in buffer 30 (asked)");
  EXPECT_REFUSED(norm, "by which no update of the reference program multiplies its gradient");
  TailPlan own(2);
  *own.program().mutable_tail()->mutable_unless_one() = operandOf(own.sum, proto::Operand::READ);
  EXPECT_REFUSED(own, "(sum) of role all is train.reduce_sum sum, which each rank has its own of");
  TailPlan zeroed;
  zeroed.builder.fill(TailPlan::update, zeroed.compute, zeroed.asked);
  EXPECT_REFUSED(zeroed, "is the constant 0.000000, by which no update");
  TailPlan never;
  never.drop(TailPlan::update, "asked");
  EXPECT_TRUE(never.verdict().starts_with("progress") || never.verdict().starts_with("value")) << never.verdict();
}

TEST(Tail, EndsWithoutItsTail) {
  TailPlan plan;
  wait(plan.commandOf(TailPlan::update, "increment"), plan.event("redo clip"));
  EXPECT_REFUSED(plan, std::string("progress: ") + unclipped);
  EXPECT_REFUSED(plan, "waits for ever");
}

TEST(Tail, FindsWhatItNeeds) {
  TailPlan kept;
  wait(kept.builder.fill(TailPlan::update, kept.host, kept.a.kept), kept.event("last keep a"));
  EXPECT_REFUSED(kept, "(a kept) holds the constant 0.000000, neither a parameter nor state");
  TailPlan other;
  other.commandOf(TailPlan::last, "read a").mutable_copy()->mutable_source()->set_buffer(other.c.file.buffer);
  EXPECT_REFUSED(other,
                 "holds c::momentum from its byte 0 on, but the update of a takes a::momentum from its byte 0 on");
  TailPlan gradient;
  gradient.builder.fill(TailPlan::update, gradient.host, gradient.c.hostGradient);
  EXPECT_REFUSED(gradient, std::string("coverage: ") + clipped);
  EXPECT_REFUSED(gradient, "(c gradient on the host) lacks micro-batch 0");
  TailPlan race;
  race.commandOf(TailPlan::redo, "return a").clear_waits();
  EXPECT_REFUSED(race, std::string("race: ") + clipped);
  TailPlan sums; // beside the copy for the host, of which one was not enough
  sums.builder.fill(TailPlan::update, sums.compute, sums.a.gradient);
  wait(sums.builder.copy(TailPlan::update, sums.out, sums.a.gradient, sums.a.hostGradient),
       sums.event("update increment"));
  EXPECT_NE(sums.verdict(), "proven");
}

TEST(Tail, EarlyUpdatesTakeWholeGradients) {
  TailPlan never;
  never.drop(TailPlan::backward, "gradient a");
  EXPECT_REFUSED(never, "squares a::gradient, which lacks micro-batch 0");
  TailPlan early;
  proto::Command &take = early.commandOf(TailPlan::last, "take a");
  take.clear_waits();
  wait(take, early.event("last h"));
  wait(early.commandOf(TailPlan::last, "gradient a"), early.event("last take a"));
  EXPECT_REFUSED(early, "(a gradient on the host) lacks micro-batch 1");
}

TEST(Tail, NothingReadsAnEarlyUpdate) {
  TailPlan plan; // as a backward does that comes behind an update
  proto::Command again = plan.commandOf(TailPlan::last, "h");
  again.clear_signals();
  again.clear_waits();
  wait(again, plan.event("last return a"));
  *plan.routine(TailPlan::last).add_commands() = again;
  EXPECT_REFUSED(plan, "holds a after an update by the factor 1, but train.matmul h takes a");
}

TEST(Tail, IsOfEveryRanksSlice) {
  TailPlan plan(2, 2, true);
  EXPECT_EQ(plan.verdict(), "proven");
  EXPECT_NO_THROW(plan::validatePlan(plan.builder.plan));
  TailPlan returned(2, 2, true);
  returned.commandOf(TailPlan::redo, "return a").mutable_copy()->mutable_target()->set_rank_stride(0);
  EXPECT_REFUSED(returned, clipped);
  EXPECT_REFUSED(returned, "holds parts of other values from its byte 0 on");
  TailPlan zeroed(2, 2, true); // the padding of the second slice
  for (const uint32_t routine : {TailPlan::last, TailPlan::redo})
    for (proto::Operand *end : {zeroed.commandOf(routine, "write a").mutable_copy()->mutable_source(),
                                zeroed.commandOf(routine, "write a").mutable_copy()->mutable_target()})
      end->set_shape(0, sliceElements - 16);
  EXPECT_REFUSED(zeroed, "nothing has written");
}

// The last micro-batch has a routine of its own.
TEST(Tail, StaysWhereMicrobatchesAreLeftOut) {
  TailPlan plan(1, 60);
  EXPECT_EQ(plan.verdict(), "proven");
  const std::optional<proto::Plan> shorter = shortenSchedule(plan.builder.plan);
  ASSERT_TRUE(shorter.has_value());
  const proto::Program &step = shorter->roles(0).programs(0);
  EXPECT_LT(step.calls_size(), 16);
  ASSERT_EQ(int(step.tail().first_call()), step.calls_size() - 1);
  EXPECT_EQ(step.calls(step.calls_size() - 1).routine(), TailPlan::redo);
  EXPECT_EQ(step.calls(step.calls_size() - 1).microbatch() + 1, shorter->training().accumulation_steps());
  EXPECT_EQ(step.calls(step.calls_size() - 3).routine(), TailPlan::last);
  TailPlan left(1, 60);
  left.drop(TailPlan::redo, "return a");
  EXPECT_REFUSED(left, "after an update by the factor 1");
}

} // namespace
} // namespace ds::check
