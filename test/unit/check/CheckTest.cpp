//===- CheckTest.cpp - one good plan, and every way to break it -----------===//
#include "compiler/check/Check.h"
#include "kernels/ElementwiseProgram.h"
#include "runtime/plan/format/PlanReader.h"
#include "test/unit/runtime/PlanBuilder.h"

#include <gtest/gtest.h>

namespace ds::check {
namespace {

using namespace ds::test;

/// Two data-parallel ranks, two micro-batches, the optimizer's state shared out. Parameters a and b lie in one bucket
/// of two slices of 1024 elements; the gradient of each micro-batch is accumulated in place; collectives have a queue
/// of their own.
struct TwoRanks {
  PlanBuilder builder{4, 2};
  uint32_t compute, collective, copyIn;
  uint32_t fed, freed, reduced, gathered, ready;
  uint32_t begin, load, backward, update, evaluate, step;
  PlanBuilder::Tensor weights, gradient, local, moment, x, loss, lr;

  TwoRanks() {
    builder.ranks(2);
    builder.plan.set_numerics("reassociated"); // micro-batches are added up first
    builder.plan.mutable_training()->set_train_batch_size(16);
    compute = builder.queue("compute");
    collective = builder.queue("collective", proto::Queue::COLLECTIVE);
    copyIn = builder.queue("copy_in", proto::Queue::COPY_IN);
    fed = builder.event("fed");
    freed = builder.event("freed");
    ready = builder.event("gradients_ready");
    reduced = builder.event("reduced");
    gathered = builder.event("gathered");
    const uint32_t a = builder.bareVariable("a", DType::F32, {1000}, 0.5);
    const uint32_t b = builder.bareVariable("b", DType::F32, {700}, 0.5);
    const uint32_t ma = builder.bareVariable("a::exp_avg", DType::F32, {1000}, 0, proto::Variable::OPTIMIZER);
    const uint32_t mb = builder.bareVariable("b::exp_avg", DType::F32, {700}, 0, proto::Variable::OPTIMIZER);
    builder.gradientOf(a);
    builder.gradientOf(b);
    weights = builder.bucketTensor(builder.bucket("w", {a, b}, 1024), /*shard=*/false);
    moment = builder.bucketTensor(builder.bucket("m", {ma, mb}, 1024), /*shard=*/true);
    lr = builder.variable("lr", DType::F64, {}, 0.1, proto::Variable::OPTIMIZER);
    const uint32_t input = builder.input("x", DType::F32, {4, 8});
    x = builder.tensor("x", DType::F32, {4, 8}, proto::Buffer::SLOT, 2);
    gradient = builder.tensor("gradient", DType::F32, {2048}, proto::Buffer::STEP);
    local = builder.tensor("local gradient", DType::F32, {2048}, proto::Buffer::CALL);
    loss = builder.tensor("loss", DType::F32, {}, proto::Buffer::STEP);
    for (const PlanBuilder::Tensor &sum : {gradient, local})
      builder.role().mutable_buffers(int(sum.buffer))->set_category(proto::Buffer::GRADIENTS);
    addRoutines(input);
    addLives();
  }

  void addRoutines(uint32_t input) {
    begin = builder.routine("begin");
    builder.fill(begin, compute, gradient);
    load = builder.routine("load");
    proto::Command &feed = builder.feed(load, copyIn, input, x);
    wait(feed, freed, 2);
    signal(feed, fed);
    backward = builder.routine("backward");
    wait(builder.kernel(backward, compute, "matmul", "rrw", {x, weights, local}), fed);
    setInstruction(builder.kernel(backward, compute, "elementwise", "rrw", {gradient, local, gradient}),
                   int64_t(kernels::ElementwiseOp::Add), {0, 1});
    signal(builder.kernel(backward, compute, "reduce_mean", "rw", {x, loss}), freed);
    update = builder.routine("update");
    signal(builder.kernel(update, compute, "increment", "r", {lr}), ready);
    proto::Command &reduce =
        builder.collective(update, collective, proto::CollectiveCommand::REDUCE_SCATTER, gradient, slice(gradient));
    strided(*reduce.mutable_collective()->mutable_parts(0)->mutable_target());
    wait(reduce, ready);
    signal(reduce, reduced);
    proto::Command &adamw =
        builder.kernel(update, compute, "adamw", "mrmr", {slice(weights), slice(gradient), moment, lr});
    strided(*adamw.mutable_kernel()->mutable_operands(0));
    strided(*adamw.mutable_kernel()->mutable_operands(1));
    wait(adamw, reduced);
    signal(adamw, gathered);
    proto::Command &gather =
        builder.collective(update, collective, proto::CollectiveCommand::ALL_GATHER, slice(weights), weights);
    strided(*gather.mutable_collective()->mutable_parts(0)->mutable_source());
    wait(gather, gathered);
    step = builder.program("step");
    for (auto [routine, microbatch] :
         {std::pair{begin, 0u}, {load, 0u}, {load, 1u}, {backward, 0u}, {backward, 1u}, {update, 1u}})
      builder.call(step, routine, microbatch);
    builder.metric(step, "loss", loss);
  }

  void addLives() {
    builder.life(x, step, load, 0, backward, 2);
    builder.life(gradient, step, begin, 0, update, 2);
    builder.life(local, step, backward, 0, backward, 1);
    builder.life(loss, step, backward, 2, update, 3);
    for (proto::Buffer &buffer : *builder.role().mutable_buffers())
      if (buffer.name() == "scratch" || (buffer.scope() != proto::Buffer::PLAN && buffer.lives_size() == 0)) {
        proto::Life &life = *buffer.add_lives(); // of collectives
        life.set_birth_routine(update);
        life.set_death_routine(update);
        life.set_death_command(3);
      }
  }

  static PlanBuilder::Tensor slice(PlanBuilder::Tensor tensor) {
    tensor.shape = {1024};
    return tensor;
  }
  static void strided(proto::Operand &operand) {
    operand.set_rank_stride(4096);
    operand.set_communicator(0);
  }

  proto::Command &at(uint32_t routine, int command) {
    return *builder.role().mutable_routines(int(routine))->mutable_commands(command);
  }
  proto::Buffer &bufferOf(const PlanBuilder::Tensor &tensor) {
    return *builder.role().mutable_buffers(int(tensor.buffer));
  }
  std::optional<Finding> check() { return checkPlan(builder.plan, World::Open); }
};

#define EXPECT_FINDING(finding, RULE, TEXT)                                                                            \
  do {                                                                                                                 \
    const std::optional<Finding> found = (finding);                                                                    \
    ASSERT_TRUE(found.has_value());                                                                                    \
    EXPECT_EQ(found->rule, RULE) << found->sentence;                                                                   \
    EXPECT_NE(found->sentence.find(TEXT), std::string::npos) << found->sentence;                                       \
  } while (false)

TEST(Check, AcceptsAPlanThatIsRight) {
  TwoRanks plan;
  ASSERT_NO_THROW(plan::validatePlan(plan.builder.plan));
  const std::optional<Finding> finding = plan.check();
  EXPECT_FALSE(finding.has_value()) << finding->sentence;
}

TEST(Check, RefusesAWaitThatNothingEnds) {
  TwoRanks plan;
  plan.at(plan.update, 2).clear_signals();
  EXPECT_FINDING(plan.check(), "progress", "queue collective waits for ever");
}

TEST(Check, RefusesAnEventOfTwoQueues) {
  TwoRanks plan;
  signal(plan.at(plan.backward, 0), plan.fed);
  EXPECT_FINDING(plan.check(), "progress", "event fed is signalled by queue");
}

TEST(Check, RefusesADroppedWaitBeforeARead) {
  TwoRanks plan;
  plan.at(plan.backward, 0).clear_waits(); // in the run that is played, the feed comes later
  EXPECT_FINDING(plan.check(), "value", "nothing has written");
}

TEST(Check, RefusesASlotThatIsFreedTooEarly) {
  TwoRanks plan;
  plan.bufferOf(plan.x).set_slots(1);
  plan.at(plan.load, 0).mutable_waits(0)->set_delay(1);
  plan.at(plan.backward, 2).clear_signals();
  signal(plan.at(plan.backward, 0), plan.freed); // the last reader is command 2
  EXPECT_FINDING(plan.check(), "race", "may still read these bytes");
}

TEST(Check, RefusesACollectiveThatDoesNotWaitForItsGradient) {
  TwoRanks plan;
  plan.at(plan.update, 1).clear_waits();
  EXPECT_FINDING(plan.check(), "race", "REDUCE_SCATTER");
}

// The play has seen the signal by then; a faster queue would not.
TEST(Check, AWaitThatNeedsNoSignalOrdersNothing) {
  TwoRanks plan;
  plan.at(plan.update, 1).mutable_waits(0)->set_delay(2); // in micro-batch 1
  EXPECT_FINDING(plan.check(), "race", "REDUCE_SCATTER");
}

TEST(Check, RefusesAnOptimizerBeforeItsGradient) {
  TwoRanks plan;
  plan.at(plan.update, 2).clear_waits(); // in the run that is played, the gradient is not there yet
  EXPECT_FINDING(plan.check(), "coverage", "it was not summed over the ranks");
}

TEST(Check, RefusesOverlappingBuffers) {
  TwoRanks plan;
  plan.bufferOf(plan.local).set_offset(plan.bufferOf(plan.gradient).offset());
  EXPECT_FINDING(plan.check(), "value", "has taken");
}

TEST(Check, RefusesAReadOfWhatNothingWrote) {
  TwoRanks plan;
  plan.at(plan.begin, 0).mutable_fill()->mutable_target()->set_shape(0, 2000);
  EXPECT_FINDING(plan.check(), "value", "nothing has written");
}

TEST(Check, RefusesAStaleSlot) {
  TwoRanks plan;
  plan.bufferOf(plan.x).set_slots(1);
  plan.at(plan.load, 0).mutable_waits(0)->set_delay(2);
  const std::optional<Finding> finding = plan.check();
  ASSERT_TRUE(finding.has_value());
  EXPECT_TRUE(finding->rule == "value" || finding->rule == "race") << finding->sentence;
}

TEST(Check, RefusesAUseOutsideALife) {
  TwoRanks plan;
  plan.bufferOf(plan.gradient).mutable_lives(0)->set_death_command(1);
  EXPECT_FINDING(plan.check(), "value", "outside the life");
}

TEST(Check, RefusesAGradientThatIsClearedLate) {
  TwoRanks plan;
  plan.builder.role().mutable_programs(0)->mutable_calls(5)->set_routine(plan.begin); // clears it once more
  plan.builder.call(plan.step, plan.update, 1);
  EXPECT_FINDING(plan.check(), "coverage", "lacks micro-batch 0");
}

TEST(Check, RefusesAResultOverAnOperandThatItsKernelMayStillRead) {
  TwoRanks plan;
  proto::Command &command = plan.at(plan.backward, 1);
  command.mutable_kernel()->set_kernel("concat");
  command.mutable_kernel()->clear_attributes();
  attribute(command, "axis").set_integer(0);
  EXPECT_FINDING(plan.check(), "race", "writes operand 2 over operand 0 in buffer");
}

TEST(Check, RefusesADoubledMicrobatch) {
  TwoRanks plan;
  *plan.builder.role().mutable_routines(int(plan.backward))->add_commands() = plan.at(plan.backward, 1);
  plan.bufferOf(plan.local).mutable_lives(0)->set_death_command(3);
  EXPECT_FINDING(plan.check(), "coverage", "holds micro-batch 0 2 times");
}

TEST(Check, RefusesAMissingReduction) {
  TwoRanks plan;
  plan.at(plan.update, 1).mutable_collective()->set_kind(proto::CollectiveCommand::BROADCAST);
  proto::CollectivePart &part = *plan.at(plan.update, 1).mutable_collective()->mutable_parts(0);
  *part.mutable_source()->mutable_shape() = part.target().shape();
  part.mutable_source()->set_rank_stride(4096);
  part.clear_scratch();
  EXPECT_FINDING(plan.check(), "coverage", "lacks micro-batch 0");
}

TEST(Check, RefusesADoubledReduction) {
  TwoRanks plan;
  proto::Command twice = plan.at(plan.update, 1);
  proto::CollectiveCommand &reduce = *plan.at(plan.update, 1).mutable_collective();
  reduce.set_kind(proto::CollectiveCommand::ALL_REDUCE);
  *reduce.mutable_parts(0)->mutable_target() = reduce.parts(0).source();
  reduce.mutable_parts(0)->mutable_target()->set_access(proto::Operand::WRITE);
  proto::Routine &update = *plan.builder.role().mutable_routines(int(plan.update));
  *update.add_commands() = twice;
  for (int i = update.commands_size() - 1; i > 2; --i)
    update.mutable_commands()->SwapElements(i, i - 1);
  EXPECT_FINDING(plan.check(), "coverage", "is such a sum already");
}

TEST(Check, RefusesAnUpdateOfTheOtherRanksSlice) {
  TwoRanks plan;
  plan.at(plan.update, 2).mutable_kernel()->mutable_operands(0)->set_rank_stride(0);
  EXPECT_TRUE(plan.check().has_value());
}

TEST(Check, RefusesAnotherRanksSliceOfASum) {
  TwoRanks plan;
  plan.at(plan.update, 2).mutable_kernel()->mutable_operands(1)->set_rank_stride(0);
  EXPECT_FINDING(plan.check(), "value", "this rank's part alone of sums that other ranks hold by now");
}

TEST(Check, RefusesASecondUpdate) {
  TwoRanks plan;
  proto::Routine &update = *plan.builder.role().mutable_routines(int(plan.update));
  *update.add_commands() = plan.at(plan.update, 2);
  update.mutable_commands()->SwapElements(4, 3);
  plan.bufferOf(plan.gradient).mutable_lives(0)->set_death_command(4);
  EXPECT_FINDING(plan.check(), "coverage", "a second time");
}

TEST(Check, RefusesParametersThatAreNotGathered) {
  TwoRanks plan;
  plan.builder.role().mutable_routines(int(plan.update))->mutable_commands()->RemoveLast();
  EXPECT_FINDING(plan.check(), "coverage", "not a after its update from its byte");
}

TEST(Check, RefusesAGatherOfOldAndNewBytes) {
  TwoRanks plan;
  for (int operand : {0, 1, 2})
    plan.at(plan.update, 2).mutable_kernel()->mutable_operands(operand)->set_shape(0, 999);
  EXPECT_FINDING(plan.check(), "coverage", "holds a from its byte 3996 on, not a after its update");
}

TEST(Check, RefusesAVariableInTwoPlaces) {
  TwoRanks plan;
  proto::Buffer &copy = *plan.builder.role().add_buffers();
  copy = plan.bufferOf(plan.weights);
  EXPECT_FINDING(plan.check(), "coverage", "variable a lies in two places, buffers ");
}

TEST(Check, RefusesWhatTheMachineCannotHold) {
  TwoRanks plan;
  plan.builder.plan.mutable_machine()->set_device_memory(1000);
  EXPECT_FINDING(plan.check(), "memory", "bytes of device memory");
}

TEST(Check, RefusesAPlanThatSaysMoreOfItsBitsThanItsSumsDo) {
  TwoRanks plan;
  EXPECT_EQ(plan.check(), std::nullopt);
  plan.builder.plan.set_numerics("bit-equal");
  EXPECT_FINDING(plan.check(), "numerics", "sums over ranks what is a sum of micro-batches 0 and 1 already");
  plan.builder.plan.mutable_machine()->set_device("cuda");
  EXPECT_FINDING(plan.check(), "numerics", "sums over ranks in an order of NCCL's own");
}

TEST(Check, RefusesAliveBuffersThatShareBytesThoughNobodySeesIt) {
  TwoRanks plan;
  const PlanBuilder::Tensor idle = plan.builder.tensor("idle", DType::F32, {4}, proto::Buffer::CALL);
  plan.builder.life(idle, plan.step, plan.backward, 0, plan.backward, 1);
  EXPECT_FALSE(plan.check().has_value());
  plan.bufferOf(idle).set_offset(plan.bufferOf(plan.local).offset());
  EXPECT_FINDING(plan.check(), "memory", "takes bytes of buffer 5 (local gradient)");
}

// The first micro-batch's backward does not wait for the second one's load, which is issued before it.
TEST(Check, RefusesLivesOfTheSameBytesThatFollowEachOtherByLuck) {
  TwoRanks plan;
  const PlanBuilder::Tensor idle = plan.builder.tensor("idle", DType::F32, {4}, proto::Buffer::CALL);
  plan.builder.life(idle, plan.step, plan.load, 0, plan.load, 0);
  EXPECT_FALSE(plan.check().has_value());
  plan.bufferOf(idle).set_offset(plan.bufferOf(plan.local).offset());
  EXPECT_FINDING(plan.check(), "race", "(idle) ends there\n  note: program step, call 2 (routine load");
}

TEST(Check, RefusesAResultThatLiesPartlyOnAnOperand) {
  TwoRanks plan;
  proto::KernelCommand &add = *plan.at(plan.backward, 1).mutable_kernel();
  for (int i = 0; i < 3; ++i)
    add.mutable_operands(i)->set_shape(0, 1024);
  add.mutable_operands(2)->set_byte_offset(64);
  EXPECT_FINDING(plan.check(), "race", "where its operand in buffer 4 (gradient) lies");
}

TEST(Check, CollectivesOfACommunicatorHaveOneQueue) {
  TwoRanks plan;
  plan.at(plan.update, 3).set_queue(plan.compute);
  EXPECT_FINDING(plan.check(), "progress", "is entered by queue");
}

// Where an error speaks of two places, the second is a note.
TEST(Check, NotesTheOtherPlace) {
  TwoRanks race;
  race.at(race.update, 1).clear_waits();
  EXPECT_FINDING(race.check(), "race", "\n  note: program step, call ");
  TwoRanks shared;
  const PlanBuilder::Tensor idle = shared.builder.tensor("idle", DType::F32, {4}, proto::Buffer::CALL);
  shared.builder.life(idle, shared.step, shared.backward, 0, shared.backward, 1);
  shared.bufferOf(idle).set_offset(shared.bufferOf(shared.local).offset());
  EXPECT_FINDING(
      shared.check(), "memory",
      "\n  note: buffer 8 (idle) lives from call 3, command 0 to call 3, command 1, buffer 5 (local gradient) "
      "from call 3, command 0 to call 3, command 1");
  TwoRanks event;
  signal(event.at(event.backward, 0), event.fed);
  EXPECT_FINDING(event.check(), "progress",
                 "\n  note: program step, call 1 (routine load, micro-batch 0), command 0 (feed) signals it first");
  TwoRanks queue;
  queue.at(queue.update, 3).set_queue(queue.compute);
  EXPECT_FINDING(queue.check(), "progress", "command 1 (REDUCE_SCATTER) enters it on the other queue");
}

} // namespace
} // namespace ds::check
