//===- PipelineCheckTest.cpp - two stages, and every way to break them -------===//
#include "compiler/check/Check.h"
#include "compiler/check/schedule/ShortenSchedule.h"
#include "kernels/ElementwiseProgram.h"
#include "runtime/plan/format/PlanReader.h"
#include "test/unit/runtime/PipelinePlan.h"
#include "test/unit/runtime/PlanBuilder.h"

#include <gtest/gtest.h>
#include <ostream>
#include <stdexcept>
#include <string>
#include <vector>

namespace ds::check {
namespace {

using namespace ds::test;

std::string verdict(const proto::Plan &plan) {
  const std::optional<Finding> finding = checkPlan(plan, World::Open);
  return finding ? finding->rule + ": " + finding->sentence : "sound";
}

TEST(PipelineCheck, ProvesSoundPlans) {
  for (const uint32_t microbatches : {1, 2, 5, 6, 40})
    for (const uint32_t ranks : {1, 3}) {
      const proto::Plan plan = pipelinePlan(microbatches, ranks).plan;
      plan::validatePlan(plan);
      EXPECT_EQ(verdict(plan), "sound") << microbatches << " x " << ranks;
    }
}

TEST(PipelineCheck, LooksAtNoMoreMicrobatchesThanTell) {
  EXPECT_FALSE(shortenSchedule(pipelinePlan(6).plan));
  const auto less = shortenSchedule(pipelinePlan(200).plan), more = shortenSchedule(pipelinePlan(500).plan);
  ASSERT_TRUE(less && more);
  plan::validatePlan(*less);
  EXPECT_LT(less->training().accumulation_steps(), 20u);
  EXPECT_EQ(less->training().accumulation_steps(), more->training().accumulation_steps());
  for (int role : {0, 1})
    EXPECT_EQ(
        less->roles(role).programs(0).SerializeAsString(),
        pipelinePlan(uint32_t(less->training().accumulation_steps())).plan.roles(role).programs(0).SerializeAsString());
}

/// Two stages that both use parameter t: each sums its own part of the gradient over the micro-batches, they exchange
/// the sums, and both update their copy with the total.
struct TiedStages {
  PlanBuilder b{1, 3};
  proto::Plan &plan = b.plan;

  TiedStages() {
    plan.set_numerics("reassociated"); // parts are added up at the end
    plan.clear_roles();
    proto::Axis &axis = *plan.mutable_world()->add_axes();
    axis.set_name("pipe");
    axis.set_size(2);
    const char *names[] = {"part 0", "part 1", "gradient", "t", "rate"};
    for (const char *name : names)
      plan.mutable_reference()->add_values()->set_name(name);
    for (auto &value : *plan.mutable_reference()->mutable_values()) {
      value.set_dtype(proto::DTYPE_F32);
      if (value.name() != "rate")
        value.add_shape(8);
    }
    b.channel("there", 0, 0, 1);
    b.channel("back", 0, 1, 0);
    for (uint32_t stage : {0u, 1u})
      addStage(stage);
    b.gradientOf(0);
    addOp("train.read", {}, 3, {0}, "microbatch");
    addOp("train.relu", {3}, 0, {}, "microbatch");
    addOp("train.exp", {3}, 1, {}, "microbatch");
    addOp("train.add", {0, 1}, 2, {}, "microbatch");
    addOp("train.accumulate", {2}, -1, {2}, "microbatch");
    addOp("train.read", {}, 4, {1}, "update");
    addOp("train.sgd", {4}, -1, {0, 2}, "update");
  }

  void addOp(const char *kind, std::vector<uint32_t> operands, int result, std::vector<uint32_t> variables,
             const char *function) {
    proto::ReferenceOp &op = *plan.mutable_reference()->add_ops();
    op.set_op(kind);
    op.set_name("of t");
    op.set_function(function);
    op.mutable_operands()->Assign(operands.begin(), operands.end());
    op.mutable_variables()->Assign(variables.begin(), variables.end());
    if (result >= 0)
      op.add_results(uint32_t(result));
  }

  void addStage(uint32_t stage) {
    b.addRole("stage" + std::to_string(stage), stage, stage);
    const uint32_t compute = b.queue("compute"), out = b.queue("out", proto::Queue::MESSAGE),
                   in = b.queue("in", proto::Queue::MESSAGE);
    const uint32_t summed = b.event("summed"), sent = b.event("sent"), came = b.event("came");
    const auto t = stage == 0 ? b.variable("t", DType::F32, {8}, 1) : b.held("t");
    const auto rate = stage == 0 ? b.variable("rate", DType::F64, {}, 0.1, proto::Variable::OPTIMIZER) : b.held("rate");
    const auto part = b.tensor("part", DType::F32, {8}, proto::Buffer::CALL),
               own = b.tensor("own", DType::F32, {8}, proto::Buffer::STEP),
               other = b.tensor("other", DType::F32, {8}, proto::Buffer::STEP),
               total = b.tensor("total", DType::F32, {8}, proto::Buffer::STEP);
    for (const auto &sum : {part, own, other, total})
      b.role().mutable_buffers(int(sum.buffer))->set_category(proto::Buffer::GRADIENTS);
    const uint32_t begin = b.routine("begin"), backward = b.routine("backward"), update = b.routine("update");
    b.fill(begin, compute, own);
    auto &gradient = b.kernel(backward, compute, "elementwise", "rw", {t, part});
    gradient.add_reference(1 + stage);
    setInstruction(gradient, int64_t(stage == 0 ? kernels::ElementwiseOp::Relu : kernels::ElementwiseOp::Exp), {0});
    auto &accumulation = b.kernel(backward, compute, "elementwise", "rrw", {own, part, own});
    setInstruction(accumulation, int64_t(kernels::ElementwiseOp::Add), {0, 1});
    accumulation.add_reference(4);
    signal(accumulation, summed);
    auto &send = b.send(update, out, stage, own);
    wait(send, summed);
    signal(send, sent);
    signal(b.receive(update, in, 1 - stage, other), came);
    auto &sum = b.kernel(update, compute, "elementwise", "rrw",
                         stage == 0 ? std::vector{own, other, total} : std::vector{other, own, total});
    setInstruction(sum, int64_t(kernels::ElementwiseOp::Add), {0, 1});
    wait(sum, came);
    wait(sum, sent);
    b.kernel(update, compute, "sgd", "mrr", {t, total, rate});
    const uint32_t step = b.program("step");
    b.call(step, begin);
    for (uint32_t m : {0u, 1u, 2u})
      b.call(step, backward, m);
    b.call(step, update, 2);
    b.life(part, step, backward, 0, backward, 1);
    b.life(own, step, begin, 0, update, 3);
    b.life(other, step, update, 1, update, 2);
    b.life(total, step, update, 2, update, 3);
  }

  proto::Command &at(int role, int routine, int command) {
    return *plan.mutable_roles(role)->mutable_routines(routine)->mutable_commands(command);
  }
};

TEST(PipelineCheck, ProvesThatATiedParameterIsSummedInBothStages) {
  TiedStages tied;
  plan::validatePlan(tied.plan);
  EXPECT_EQ(verdict(tied.plan), "sound");
}

TEST(PipelineCheck, PartsThatAreAddedAtTheEndAreNotInTheOrderOfOneRank) {
  TiedStages tied;
  tied.plan.set_numerics("bit-equal");
  EXPECT_TRUE(
      verdict(tied.plan).starts_with("numerics: program step, call 4 (routine update, micro-batch 2), command 3 "
                                     "(sgd) of role stage0, rank 0: takes the gradient of t, whose parts of "
                                     "micro-batch 0 were added apart"))
      << verdict(tied.plan);
}

TEST(PipelineCheck, RefusesATieThatIsNotSummed) {
  TiedStages alone; // one stage takes its own part for the whole
  alone.at(1, 2, 3).mutable_kernel()->mutable_operands(1)->set_buffer(alone.at(1, 2, 0).send().sources(0).buffer());
  EXPECT_NE(verdict(alone.plan)
                .find("the gradient of t in buffer 3 (own) is the sum of train.exp of t from its byte 0 on, "
                      "not of train.add of t from its byte 0 on"),
            std::string::npos)
      << verdict(alone.plan);
  TiedStages twice; // and one counts its own part twice
  twice.at(0, 2, 2).mutable_kernel()->mutable_operands(1)->set_buffer(twice.at(0, 2, 0).send().sources(0).buffer());
  EXPECT_NE(verdict(twice.plan).find("holds micro-batch 0 2 times"), std::string::npos) << verdict(twice.plan);
  TiedStages early; // and one sends its part before the last micro-batch is in it
  early.at(1, 2, 0).mutable_waits(0)->set_delay(1);
  EXPECT_NE(verdict(early.plan).find("race: "), std::string::npos) << verdict(early.plan);
  TiedStages old; // and one adds what it had not received yet
  old.at(0, 2, 2).clear_waits();
  EXPECT_NE(verdict(old.plan), "sound");
}

struct Break {
  const char *name;
  void (*spoil)(proto::Plan &plan);
  const char *finding;
};
// NOLINTNEXTLINE(readability-identifier-naming): GoogleTest looks for this name
void PrintTo(const Break &one, std::ostream *out) { *out << one.name; }

proto::Command &at(proto::Plan &plan, int role, const std::string &routine, int command) {
  for (proto::Routine &candidate : *plan.mutable_roles(role)->mutable_routines())
    if (candidate.name() == routine)
      return *candidate.mutable_commands(command);
  throw std::runtime_error("no routine " + routine);
}

uint32_t bufferCalled(const proto::Plan &plan, int role, const std::string &name) {
  for (int i = 0; i < plan.roles(role).buffers_size(); ++i)
    if (plan.roles(role).buffers(i).name() == name)
      return uint32_t(i);
  throw std::runtime_error("no buffer " + name);
}

class PipelineCheckRefuses : public testing::TestWithParam<Break> {};

TEST_P(PipelineCheckRefuses, ABrokenPlan) {
  for (const uint32_t microbatches : {5u, 60u}) {
    proto::Plan plan = pipelinePlan(microbatches).plan;
    GetParam().spoil(plan);
    const std::string said = verdict(plan);
    EXPECT_NE(said.find(GetParam().finding), std::string::npos) << microbatches << ": " << said;
  }
}

auto &calls(proto::Plan &plan, int role) { return *plan.mutable_roles(role)->mutable_programs(0)->mutable_calls(); }

const Break breaks[] = {
    {"NoWaitForTheMessage", [](proto::Plan &p) { at(p, 1, "forward", 0).clear_waits(); },
     "of role stage1, rank 1: reads buffer 7 (h)"},
    {"NoWaitForTheSlotToReceiveInto", [](proto::Plan &p) { at(p, 1, "receive", 0).clear_waits(); },
     "(receive) of role stage1, rank 1: writes buffer 7 (h) while"},
    {"NoWaitForTheSlotToSendFrom", [](proto::Plan &p) { at(p, 0, "forward", 1).clear_waits(); },
     "(send) of role stage0 reads them"},
    {"NoWaitForWhatIsSent", [](proto::Plan &p) { at(p, 0, "forward", 2).clear_waits(); },
     "(send) of role stage0, rank 0: reads buffer 7 (h) while"},
    {"SlotTakenAMicrobatchEarly", [](proto::Plan &p) { at(p, 1, "receive", 0).mutable_waits(0)->set_delay(3); },
     "race: program step"},
    {"OneSlotForTwo",
     [](proto::Plan &p) { p.mutable_roles(1)->mutable_buffers(int(bufferCalled(p, 1, "h")))->set_slots(1); },
     "of role stage1"},
    {"SendsInAnotherOrder",
     [](proto::Plan &p) { // forwards 1 and 2 exchanged, with all that waits for them
       for (proto::Call &call : calls(p, 0))
         if (const uint32_t m = call.microbatch(); (m == 1 || m == 2) && call.routine() == 1)
           call.set_microbatch(3 - m);
     },
     "of role stage0"},
    {"MessageOfAnotherMicrobatch",
     [](proto::Plan &p) {
       for (proto::Call &call : calls(p, 0))
         if (const uint32_t m = call.microbatch(); (m == 1 || m == 2) && call.routine() != 4)
           call.set_microbatch(3 - m);
     },
     "what its sender sends of micro-batch 2"},
    {"MessageDropped",
     [](proto::Plan &p) {
       proto::Command &send = at(p, 1, "update", 5);
       send.clear_send();
       *send.mutable_fill()->mutable_target() = at(p, 1, "begin", 1).fill().target();
     },
     "(receive) of role stage0: queue losses waits for ever"},
    {"AnotherValue",
     [](proto::Plan &p) {
       at(p, 1, "backward", 3).mutable_send()->mutable_sources(0)->set_buffer(bufferCalled(p, 1, "h"));
     },
     "of role stage1"},
    {"InputInsteadOfGradient",
     [](proto::Plan &p) { // a copy of h, which is there, is sent back
       proto::Command &product = at(p, 1, "backward", 1);
       const proto::Operand target = product.kernel().operands(2);
       *product.mutable_copy()->mutable_target() = target;
       *product.mutable_copy()->mutable_source() = at(p, 1, "backward", 0).kernel().operands(0);
       product.clear_reference();
       at(p, 1, "backward", 0).clear_signals();
       product.add_signals(1);
       p.mutable_roles(1)->mutable_buffers(int(bufferCalled(p, 1, "h")))->mutable_lives(0)->set_death_command(1);
     },
     "meaning: program step, call 4 (routine backward, micro-batch 0), command 0 (matmul of da) of role stage0, rank "
     "0: "
     "operand 1 holds train.matmul h, but train.matmul da takes train.matmul dh"},
    {"MicrobatchMissing",
     [](proto::Plan &p) {
       at(p, 1, "backward", 2).mutable_collective()->mutable_parts(0)->set_accumulate(false);
       at(p, 1, "backward", 2)
           .mutable_collective()
           ->mutable_parts(0)
           ->mutable_target()
           ->set_access(proto::Operand::WRITE);
     },
     "coverage: program step, call"},
    {"LossNotSummed", [](proto::Plan &p) { at(p, 1, "forward", 2).clear_reference(); },
     "(loss) for micro-batch 1, but it holds that of micro-batch 0"},
    {"NormOfOneStage",
     [](proto::Plan &p) { at(p, 1, "update", 2).mutable_kernel()->mutable_operands(0)->set_byte_offset(8); },
     "it counts a part of the gradients twice"},
    {"NormOfOtherParts",
     [](proto::Plan &p) { // as if the second stage were the first
       at(p, 0, "update", 2).mutable_kernel()->mutable_operands(0)->set_byte_offset(8);
       at(p, 0, "update", 2).mutable_kernel()->mutable_operands(1)->set_byte_offset(0);
     },
     "operand 0 holds train.block_sum_squares part c, but train.global_norm norm takes train.block_sum_squares part a"},
    {"ParameterNowhere",
     [](proto::Plan &p) { p.mutable_roles(1)->mutable_buffers(int(bufferCalled(p, 1, "c")))->clear_variable(); },
     "coverage: parameter c is trained, but no role holds it"},
};
INSTANTIATE_TEST_SUITE_P(Stages, PipelineCheckRefuses, testing::ValuesIn(breaks),
                         [](const auto &info) { return info.param.name; });

} // namespace
} // namespace ds::check
