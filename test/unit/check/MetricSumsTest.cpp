//===- MetricSumsTest.cpp - sums of losses, and running statistics ----------===//
#include "compiler/check/Check.h"
#include "kernels/ElementwiseProgram.h"
#include "runtime/plan/format/PlanReader.h"
#include "test/unit/check/ReferenceBuilder.h"
#include "test/unit/check/UsedLives.h"
#include "test/unit/runtime/PlanBuilder.h"

#include <algorithm>
#include <cstdint>
#include <gtest/gtest.h>
#include <iterator>
#include <string>
#include <vector>

namespace ds::check {
namespace {

using namespace ds::test;
using Tensor = PlanBuilder::Tensor;
using kernels::ElementwiseOp;

/// Sums x over micro-batches and ranks into `loss`, averages it into `average`, and yields the sum's square.
class Reference : public ReferenceBuilder {
public:
  explicit Reference(PlanBuilder &b) : ReferenceBuilder(b) {
    value("x", proto::DTYPE_F32, {1});
    effect("sum", "train.accumulate", {"x"}, {"loss"});
    effect("average", "train.update_average", {"x"}, {"average"});
    attribute("momentum").set_number(0.5);
    attribute("correction").set_number(1);
    beginFunction("update");
    op("total", "train.read", {}, {"loss"}, {1});
    op("square", "train.mul", {"total", "total"}, {}, {1});
    effect("store", "train.store", {"square"}, {"lr"});
  }
};

/// Two micro-batches, on one rank or on two, with room for commands that should not be there in routine `between`.
class Plan {
public:
  explicit Plan(uint32_t ranks = 1) : reference_(withStorage(*this, ranks)) {
    compute = b.queue("compute");
    const uint32_t collective = b.queue("collective", proto::Queue::COLLECTIVE);
    for (const char *name : {"begin", "take", "between", "report"})
      b.routine(name);
    b.fill(begin, compute, loss);
    b.fill(begin, compute, kept);
    b.feed(take, compute, 0, x);
    if (ranks == 1)
      reference_.describe(apply(take, ElementwiseOp::Add, {loss, x, loss}), "sum");
    else
      addSumOverRanks(collective);
    addAverage();
    reference_.describe(apply(report, ElementwiseOp::Mul, {loss, loss, square}), "square");
    const uint32_t program = b.program("step");
    b.call(program, begin);
    for (const uint32_t microbatch : {0u, 1u})
      for (const uint32_t routine : {take, between})
        b.call(program, routine, microbatch);
    b.call(program, report, 1);
    b.metric(program, "loss", loss);
    b.metric(program, "lr", square);
  }

  proto::Command &apply(uint32_t routine, ElementwiseOp op, const std::vector<Tensor> &operands) {
    const std::string accesses = std::string(operands.size() - 1, 'r') + "w";
    proto::Command &command = b.kernel(routine, compute, "elementwise", accesses, operands);
    setInstruction(command, int64_t(op), operands.size() > 2 ? std::vector<int64_t>{0, 1} : std::vector<int64_t>{0});
    return command;
  }
  /// What is in routine `between` is called behind one micro-batch alone.
  void callBetween(uint32_t microbatch) {
    auto &calls = *b.role().mutable_programs(0)->mutable_calls();
    calls.DeleteSubrange(microbatch == 0 ? 4 : 2, 1);
  }
  proto::Command &command(uint32_t routine, int index) {
    return *b.role().mutable_routines(int(routine))->mutable_commands(index);
  }
  void leaveOut(uint32_t routine, int index) {
    b.role().mutable_routines(int(routine))->mutable_commands()->DeleteSubrange(index, 1);
  }
  /// As of a module that is called twice: the second average of a micro-batch is a command behind the first.
  proto::Command &averageTwice() {
    auto &ops = *b.plan.mutable_reference()->mutable_ops();
    const auto first = std::ranges::find(ops, "train.update_average", &proto::ReferenceOp::op);
    const proto::ReferenceOp again = *first;
    *ops.Add() = again;
    proto::Command &command = *b.role().mutable_routines(int(take))->add_commands();
    command = this->command(take, 2);
    command.set_reference(0, uint32_t(ops.size() - 1));
    return command;
  }
  std::string verdict() {
    setLivesAsUsed(b.role());
    plan::validatePlan(b.plan);
    const std::optional<Finding> finding = checkPlan(b.plan, World::Closed);
    return finding ? finding->rule + ": " + finding->sentence : "proven";
  }

  static constexpr uint32_t begin = 0, take = 1, between = 2, report = 3;

  PlanBuilder b{1, 2};
  uint32_t compute = 0;
  Tensor average, x, loss, kept, square, mark;

private:
  static PlanBuilder &withStorage(Plan &own, uint32_t ranks) {
    PlanBuilder &b = own.b;
    own.average = b.variable("average", DType::F32, {1}, 0, proto::Variable::BUFFER);
    for (const char *name : {"loss", "lr"})
      b.bareVariable(name, DType::F32, {1}, 0, proto::Variable::OPTIMIZER);
    b.input("x", DType::F32, {1});
    own.x = b.tensor("x", DType::F32, {1}, proto::Buffer::STEP);
    own.loss = b.tensor("loss", DType::F32, {1}, proto::Buffer::STEP);
    own.kept = b.tensor("kept", DType::F32, {1}, proto::Buffer::STEP);
    own.square = b.tensor("square", DType::F32, {1}, proto::Buffer::STEP);
    own.mark = b.tensor("mark", DType::F32, {}, proto::Buffer::CALL);
    if (ranks > 1)
      b.ranks(ranks);
    *b.plan.mutable_variables(0)->mutable_placement() = b.plan.inputs(0).placement();
    return b;
  }
  /// In place, for which compute waits before and after.
  void addSumOverRanks(uint32_t queue) {
    const uint32_t before = b.event("before"), after = b.event("after");
    signal(b.fill(take, compute, mark), before);
    proto::Command &sum = b.collective(take, queue, proto::CollectiveCommand::ALL_REDUCE, x, loss);
    accumulate(sum);
    reference_.describe(sum, "sum");
    wait(sum, before);
    signal(sum, after);
    wait(b.fill(take, compute, mark), after);
  }
  /// average * 0.5 + x * 0.5
  void addAverage() {
    proto::Command &command = b.kernel(take, compute, "elementwise", "rrw", {average, x, average});
    constexpr int64_t f32 = proto::DTYPE_F32, constant = int64_t(ElementwiseOp::Constant),
                      mul = int64_t(ElementwiseOp::Mul), add = int64_t(ElementwiseOp::Add);
    const int64_t words[] = {constant, f32, 0, -1, -1, mul, f32, 0, 2, -1, // by register: 2, 3
                             mul,      f32, 1, 2,  -1, add, f32, 3, 4, -1};
    attribute(command, "program").mutable_integers()->mutable_values()->Assign(std::begin(words), std::end(words));
    attribute(command, "constants").mutable_numbers()->add_values(0.5);
    attribute(command, "results").mutable_integers()->add_values(5);
    reference_.describe(command, "average");
  }

  const Reference reference_;
};

class MetricSums : public testing::TestWithParam<uint32_t> {};
INSTANTIATE_TEST_SUITE_P(Ranks, MetricSums, testing::Values(1u, 2u));

void expectRefusal(Plan &plan, const std::string &sentence) {
  const std::string verdict = plan.verdict();
  EXPECT_NE(verdict.find(sentence), std::string::npos) << verdict;
}

TEST_P(MetricSums, AcceptsThePlan) { EXPECT_EQ(Plan(GetParam()).verdict(), "proven"); }

TEST_P(MetricSums, RefusesZerosBetweenMicrobatches) {
  Plan plan(GetParam());
  plan.b.fill(Plan::between, plan.compute, plan.loss);
  plan.callBetween(0);
  expectRefusal(plan, "takes micro-batch 1 into the constant 0.000000, not into loss of the first micro-batch");
}

TEST_P(MetricSums, RefusesASumThatIsReadTooEarly) {
  Plan plan(GetParam());
  plan.apply(Plan::between, ElementwiseOp::Copy, {plan.loss, plan.kept});
  plan.callBetween(0);
  plan.command(Plan::report, 0).mutable_kernel()->mutable_operands(1)->set_buffer(plan.kept.buffer);
  expectRefusal(plan, "it does not compute train.mul square, as it is said to, of what its operands hold");
}

TEST_P(MetricSums, RefusesAMetricThatIsReadTooEarly) {
  Plan plan(GetParam());
  plan.apply(Plan::between, ElementwiseOp::Copy, {plan.loss, plan.kept});
  plan.callBetween(0);
  plan.b.role().mutable_programs(0)->mutable_metrics(0)->mutable_source()->set_buffer(plan.kept.buffer);
  expectRefusal(plan, "which holds loss of the first micro-batch, not loss");
}

TEST_P(MetricSums, RefusesASumFromSomethingElse) {
  Plan plan(GetParam());
  plan.b.feed(Plan::begin, plan.compute, 0, plan.loss);
  expectRefusal(plan, "takes micro-batch 0 into input x, not into the constant 0.000000");
}

TEST(MetricSum, RefusesASumOverRanksThatReplacesTheOneBefore) {
  Plan plan(2);
  proto::CollectivePart &part = *plan.command(Plan::take, 2).mutable_collective()->mutable_parts(0);
  part.set_accumulate(false);
  part.mutable_target()->set_access(proto::Operand::WRITE);
  expectRefusal(plan, "takes micro-batch 1 into the constant 0.000000, not into loss of the first micro-batch");
}

TEST(MetricSum, RefusesAMicrobatchThatIsLeftOut) {
  Plan plan;
  auto &calls = *plan.b.role().mutable_programs(0)->mutable_calls();
  calls.DeleteSubrange(3, 1);
  expectRefusal(plan, "it does not compute train.mul square, as it is said to, of what its operands hold");
}

TEST(MetricSum, RefusesAStatisticThatIsPutBack) {
  Plan plan;
  plan.apply(Plan::begin, ElementwiseOp::Copy, {plan.average, plan.kept});
  plan.apply(Plan::report, ElementwiseOp::Copy, {plan.kept, plan.average});
  expectRefusal(plan, "holds average from its byte 0 on, not average of the first 2 micro-batches");
}

TEST(MetricSum, RefusesAStatisticOfTheFirstMicrobatchAlone) {
  Plan plan;
  plan.apply(Plan::between, ElementwiseOp::Copy, {plan.average, plan.kept});
  plan.callBetween(0);
  plan.apply(Plan::report, ElementwiseOp::Copy, {plan.kept, plan.average});
  expectRefusal(plan, "holds average of the first micro-batch from its byte 0 on, not average of the first 2");
}

TEST(MetricSum, RefusesAStatisticThatIsLeftAlone) {
  Plan plan;
  plan.leaveOut(Plan::take, 2);
  expectRefusal(plan, "holds average from its byte 0 on, not average of the first 2 micro-batches");
}

TEST(MetricSum, RefusesAnAverageBesideAnotherResult) {
  Plan plan;
  proto::KernelCommand &kernel = *plan.command(Plan::take, 2).mutable_kernel();
  *kernel.add_operands() = kernel.operands(2);
  kernel.mutable_operands(2)->set_buffer(plan.kept.buffer);
  for (proto::Attribute &attribute : *kernel.mutable_attributes())
    if (attribute.name() == "results")
      attribute.mutable_integers()->mutable_values()->Add(1);
  expectRefusal(plan, "it is no elementwise kernel that writes one operand, as train.update_average needs");
}

/// In a buffer that has room for it.
TEST(MetricSum, RefusesASumByAnotherKernel) {
  Plan plan;
  proto::KernelCommand &kernel = *plan.command(Plan::take, 1).mutable_kernel();
  kernel.set_kernel("increment");
  kernel.clear_attributes();
  kernel.mutable_operands()->DeleteSubrange(0, 2);
  kernel.mutable_operands(0)->set_access(proto::Operand::READ_WRITE);
  kernel.mutable_operands(0)->set_dtype(proto::DTYPE_I64);
  kernel.mutable_operands(0)->clear_shape();
  plan.b.role().mutable_buffers(int(plan.loss.buffer))->set_bytes(8);
  plan.command(Plan::begin, 0).mutable_fill()->mutable_target()->set_shape(0, 2);
  expectRefusal(plan, "it is no elementwise kernel that writes one operand, as train.accumulate needs");
}

/// A cast makes a number of the bits, as of a statistic that is one.
TEST(MetricSum, RefusesAStatisticOfAnotherType) {
  Plan plan;
  proto::KernelCommand &kernel = *plan.command(Plan::take, 2).mutable_kernel();
  kernel.mutable_operands(0)->set_dtype(proto::DTYPE_I32);
  constexpr int64_t f32 = proto::DTYPE_F32, constant = int64_t(ElementwiseOp::Constant),
                    cast = int64_t(ElementwiseOp::Cast), mul = int64_t(ElementwiseOp::Mul),
                    add = int64_t(ElementwiseOp::Add);
  const int64_t words[] = {constant, f32, 0, -1, -1, cast, f32, 0, -1, -1, // by register: 2, 3
                           mul,      f32, 3, 2,  -1, mul,  f32, 1, 2,  -1, add, f32, 4, 5, -1};
  for (proto::Attribute &attribute : *kernel.mutable_attributes())
    if (attribute.name() == "program")
      attribute.mutable_integers()->mutable_values()->Assign(std::begin(words), std::end(words));
    else if (attribute.name() == "results")
      attribute.mutable_integers()->set_values(0, 6);
  expectRefusal(plan, "it does not compute train.update_average average of average and input x");
}

TEST(MetricSum, RefusesTheSumOfAnotherFunction) {
  Plan plan;
  for (proto::ReferenceOp &op : *plan.b.plan.mutable_reference()->mutable_ops())
    if (op.op() == "train.accumulate")
      op.set_function("evaluate");
  expectRefusal(plan, "names train.accumulate of function evaluate, which program step does not run");
}

/// Behind zeros of all ranks the same micro-batch comes again.
TEST(MetricSum, RefusesASumOverRanksThatIsTakenForZeros) {
  Plan plan(2);
  const uint32_t collective = plan.command(Plan::take, 2).queue(), done = plan.b.event("done");
  for (const Tensor &source : {plan.kept, plan.x})
    accumulate(plan.b.collective(Plan::take, collective, proto::CollectiveCommand::ALL_REDUCE, source, plan.loss));
  auto &commands = *plan.b.role().mutable_routines(int(Plan::take))->mutable_commands();
  *commands.rbegin()->mutable_reference() = plan.command(Plan::take, 2).reference();
  signal(*commands.rbegin(), done);
  wait(plan.b.fill(Plan::take, plan.compute, plan.mark), done);
  expectRefusal(plan, "takes micro-batch 0 into loss of the first micro-batch, not into the constant 0.000000");
}

TEST(MetricSum, KnowsStatisticsThatAMicrobatchTakesTwice) {
  Plan right, once, exchanged, doubled;
  right.averageTwice();
  EXPECT_EQ(right.verdict(), "proven");
  once.averageTwice();
  once.b.role().mutable_routines(int(Plan::take))->mutable_commands()->RemoveLast();
  expectRefusal(once,
                "takes micro-batch 1 into average within micro-batch 0, not into average of the first micro-batch");
  proto::Command &second = exchanged.averageTwice();
  second.Swap(&exchanged.command(Plan::take, 2));
  expectRefusal(exchanged, "takes micro-batch 0 into average, not into average within micro-batch 0");
  doubled.averageTwice().set_reference(0, doubled.command(Plan::take, 2).reference(0));
  expectRefusal(doubled, "takes micro-batch 0 into average within micro-batch 0, not into average");
}

} // namespace
} // namespace ds::check
