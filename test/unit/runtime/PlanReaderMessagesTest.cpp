//===- PlanReaderMessagesTest.cpp - channels, sends, receives -------------===//
#include "core/DType.h"
#include "runtime/plan/format/PlanReader.h"
#include "runtime/plan/plan.pb.h"
#include "runtime/plan/world/RolePeers.h"
#include "test/unit/runtime/BadPlan.h"
#include "test/unit/runtime/Files.h"
#include "test/unit/runtime/PipelinePlan.h"
#include "test/unit/runtime/PlanBuilder.h"

#include <cstdint>
#include <string>
#include <vector>

namespace ds::test {
namespace {

proto::Command &at(proto::Plan &plan, int role, const std::string &routine, int command) {
  for (proto::Routine &candidate : *plan.mutable_roles(role)->mutable_routines())
    if (candidate.name() == routine)
      return *candidate.mutable_commands(command);
  throw std::runtime_error("no routine " + routine);
}

proto::Channel &channel(proto::Plan &plan, int index) { return *plan.mutable_channels(index); }
proto::Operand &sent(proto::Plan &plan) { return *at(plan, 0, "forward", 2).mutable_send()->mutable_sources(0); }
proto::Operand &received(proto::Plan &plan) { return *at(plan, 1, "receive", 0).mutable_receive()->mutable_targets(0); }
proto::Program &steps(proto::Plan &plan, int role) { return *plan.mutable_roles(role)->mutable_programs(0); }

/// A pipeline of so many stages.
proto::Pipeline &stages(proto::Plan &plan, int count) {
  proto::Pipeline &pipeline = *plan.mutable_pipeline();
  pipeline.set_schedule("1f1b");
  pipeline.set_chunks(1);
  for (int i = 0; i < count; ++i)
    pipeline.add_stages();
  return pipeline;
}

class PlanReaderRefusesMessages : public testing::TestWithParam<BadPlan> {};

TEST_P(PlanReaderRefusesMessages, ABrokenRule) {
  proto::Plan plan = pipelinePlan(4, 2).plan;
  GetParam().spoil(plan);
  EXPECT_ERROR(plan::validatePlan(plan), GetParam().error);
}

TEST(PlanReaderMessages, TakesASoundPipeline) {
  for (const uint32_t microbatches : {1, 2, 5})
    EXPECT_EQ(errorOf([&] { plan::validatePlan(pipelinePlan(microbatches, 3).plan); }), "no error");
}

TEST(PlanReaderMessages, TakesWhatIsSaidOfItsStages) {
  proto::Plan plan = pipelinePlan(4, 2).plan;
  stages(plan, 2).mutable_stages(0)->add_sent()->set_to_stage(1);
  EXPECT_EQ(errorOf([&] { plan::validatePlan(plan); }), "no error");
}

/// A role may be split, as long as its parts say the same.
TEST(PlanReaderMessages, TakesAStageOfTwoRoles) {
  proto::Plan plan = pipelinePlan(4, 2).plan;
  *plan.add_roles() = plan.roles(1);
  plan.mutable_roles(1)->set_ranks(1, 2);
  plan.mutable_roles(2)->set_ranks(0, 3);
  EXPECT_EQ(errorOf([&] { plan::validatePlan(plan); }), "no error");
  steps(plan, 2).mutable_calls()->RemoveLast(); // the loss is not sent, and the norm not gathered
  EXPECT_ERROR(plan::validatePlan(plan), "enter other collectives of communicator pipe");
}

const std::vector<BadPlan> messageRules = {
    BAD(ChannelName, "its name is empty or another channel has it\n  note: channel 0 (forward) has it first",
        channel(p, 1).set_name("forward")),
    BAD(ChannelAxis, "names axis 2, but there are 2", channel(p, 0).set_axis(2)),
    BAD(ChannelEnds, "leads from 0 to 0, which are not two of the 2 coordinates of axis pipe", channel(p, 0).set_to(0)),
    BAD(ChannelOutside, "leads from 0 to 2, which are not two", channel(p, 0).set_to(2)),
    BAD(SendChannel, "names channel 3, but there are 3", at(p, 0, "forward", 2).mutable_send()->set_channel(3)),
    BAD(Empty, "its message has no operands", at(p, 0, "forward", 2).mutable_send()->clear_sources()),
    BAD(Source, "(send), source 0: its access must be READ", sent(p).set_access(proto::Operand::WRITE)),
    BAD(Target, "(receive), target 0: its access must be WRITE", received(p).set_access(proto::Operand::READ)),
    BAD(Bounds, "pass the end of buffer", sent(p).set_shape(1, 300)),
    BAD(WrongEnd,
        "it receives from channel 0 (forward), which ends at coordinate 1 of axis pipe, but rank 0 of role stage0 "
        "stands at 0",
        at(p, 0, "receive", 0).mutable_receive()->set_channel(0)),
    BAD(WrongWay, "it sends on channel 0 (forward), which begins at coordinate 1", channel(p, 0).set_from(1);
        channel(p, 0).set_to(0)),
    BAD(NotOnMessages, "it is a message, but queue compute is not of kind MESSAGE",
        at(p, 0, "forward", 2).set_queue(0)),
    BAD(OnMessages, "queue forward is for messages alone, and it is none", at(p, 0, "forward", 1).set_queue(1)),
    BAD(TwoChannelsOfAQueue, "a channel has one queue at each end, and that queue no other channel",
        at(p, 1, "update", 5).set_queue(0)),
    BAD(Shapes,
        "program step, call 1 (routine 1 (forward), micro-batch 0), command 2 of role stage0: role stage0 sends "
        "float32 "
        "[1, 3] as message 0 on channel 0 (forward), but role stage1 receives float32 [3, 1] in program step, call 1 "
        "(routine 1 (receive), micro-batch 0), command 0 of role stage1",
        received(p).set_shape(0, 3);
        received(p).set_shape(1, 1)),
    BAD(DTypes, "but role stage1 receives int32 [1, 3]", received(p).set_dtype(proto::DTYPE_I32)),
    BAD(Parts, "receives float32 [1, 3] and float32 [1, 3] in",
        {
          auto &receive = *at(p, 1, "receive", 0).mutable_receive();
          *receive.add_targets() = receive.targets(0);
        }),
    BAD(TooFew, "role stage0 sends message 3 on channel 0 (forward), but role stage1 receives only 3",
        steps(p, 1).mutable_calls()->DeleteSubrange(8, 1)),
    BAD(TooMany, "role stage1 receives message 4 on channel 0 (forward), but role stage0 sends only 4",
        *steps(p, 1).add_calls() = steps(p, 1).calls(1)),
    BAD(OtherProgram, "role stage1 has one that it has not, but role stage0 one of 0 micro-batches",
        p.mutable_roles(0)->add_programs()->set_name("evaluate")),
    BAD(OtherMicrobatches, "role stage1 has one of 4 micro-batches, but role stage0 one of 1 micro-batches",
        {
          for (proto::Call &call : *steps(p, 0).mutable_calls())
            call.set_microbatch(0);
        }),
    BAD(OtherCaptured,
        "program step: role stage1 has one of 4 micro-batches, but role stage0 one of 4 micro-batches that is "
        "captured; "
        "ranks run a program together",
        p.mutable_machine()->set_device("cuda");
        steps(p, 0).set_captured(true)),
    BAD(OtherTail,
        "program step: role stage1 has one of 4 micro-batches, but role stage0 one of 4 micro-batches that has a tail",
        proto::Tail &tail = *steps(p, 0).mutable_tail();
        tail.set_first_call(1); *tail.mutable_unless_one() = steps(p, 0).metrics(0).source()),
    BAD(Schedule, "pipeline: its schedule is none of gpipe, 1f1b, interleaved, zb-h1, accumulate-by-layer",
        p.mutable_pipeline()->set_schedule("1b1f")),
    BAD(Stages, "pipeline: it has 3 stages, not 1 on each of 2 ranks along axis pipe", stages(p, 3)),
    BAD(Chunks, "pipeline: it has 2 stages, not 0 on each of 2 ranks", stages(p, 2).set_chunks(0)),
    BAD(Bubble, "pipeline: its bubble is no fraction of a step", stages(p, 2).set_bubble_fraction(1.5)),
    BAD(StageName, "stage 1: its name holds the control character 10",
        stages(p, 2).mutable_stages(1)->set_last_op("a\nb")),
    BAD(StageTime, "stage 0: its seconds are negative or not finite",
        stages(p, 2).mutable_stages(0)->set_backward_seconds(-1)),
    BAD(SentTo, "stage 0: it names stage 2, but there are 2",
        stages(p, 2).mutable_stages(0)->add_sent()->set_to_stage(2)),
    BAD(StageOfAnotherRank,
        "routine 0 (begin): its stage 0 runs at coordinate 0 of axis pipe, and role stage1 stands at 1", stages(p, 2);
        p.mutable_roles(1)->mutable_routines(0)->set_phase(proto::Routine::RECEIVE);
        p.mutable_roles(1)->mutable_routines(0)->set_stage(0)),
    BAD(NoMeeting, "would wait for ever for the other end of channel", // a backward before its forward
        steps(p, 0).mutable_calls()->SwapElements(1, 4)),
    BAD(NobodySignals, "queue forward would wait for ever for event 0 (computed) to reach 1; it stays at 0",
        at(p, 0, "forward", 1).clear_signals()),
    BAD(NobodySignalsInTheSecondRole, // each role has calls of its own
        "(routine 2 (forward), micro-batch 0), command 0 of role stage1: queue compute would wait for ever",
        at(p, 1, "receive", 0).clear_signals()),
};
INSTANTIATE_TEST_SUITE_P(Messages, PlanReaderRefusesMessages, testing::ValuesIn(messageRules),
                         [](const auto &info) { return info.param.name; });

TEST(RolePeers, FollowTheLinesOfAChannel) {
  proto::Plan plan = pipelinePlan(2, 3).plan;
  *plan.add_roles() = plan.roles(1);
  plan.mutable_roles(1)->set_ranks(1, 4);
  plan.mutable_roles(2)->set_ranks(0, 5);
  plan::RolePeers meetings(plan);
  EXPECT_EQ(meetings.onChannel(0), (plan::RolePairs{{0, 1}, {0, 2}}));
  EXPECT_EQ(meetings.onChannel(1), (plan::RolePairs{{1, 0}, {2, 0}}));
  EXPECT_EQ(meetings.inCommunicator(0), (plan::RolePairs{{1, 2}})); // data
  EXPECT_EQ(meetings.inCommunicator(1), (plan::RolePairs{{0, 1}, {0, 2}}));
}

} // namespace
} // namespace ds::test
