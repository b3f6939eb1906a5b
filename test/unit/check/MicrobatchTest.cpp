//===- MicrobatchTest.cpp - values of one micro-batch, read by another ------===//
#include "compiler/check/Check.h"
#include "kernels/ElementwiseProgram.h"
#include "runtime/plan/format/PlanReader.h"
#include "test/unit/check/ReferenceBuilder.h"
#include "test/unit/check/UsedLives.h"
#include "test/unit/runtime/PlanBuilder.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <string>
#include <utility>
#include <vector>

namespace ds::check {
namespace {

using namespace ds::test;
using Tensor = PlanBuilder::Tensor;
using kernels::ElementwiseOp;

std::string verdictOf(proto::Plan &plan, World world) {
  for (proto::Role &role : *plan.mutable_roles())
    setLivesAsUsed(role);
  plan::validatePlan(plan);
  const std::optional<Finding> finding = checkPlan(plan, world);
  return finding ? finding->rule + ": " + finding->sentence : "proven";
}

/// The gradient of w is h * (m * w^2 + s^2), with h = x w, m = dropout(w), and a state s' = s + h that micro-batches
/// hand on. Of each micro-batch the sum of h is a metric.
class Reference : public ReferenceBuilder {
public:
  explicit Reference(PlanBuilder &b) : ReferenceBuilder(b) {
    value("x", proto::DTYPE_F32, {4});
    op("w", "train.read", {}, {"w"}, {4});
    op("s", "train.read", {}, {"s"}, {4});
    op("ww", "train.mul", {"w", "w"}, {}, {4});
    op("h", "train.mul", {"x", "w"}, {}, {4});
    op("ss", "train.mul", {"s", "s"}, {}, {4});
    op("next", "train.add", {"s", "h"}, {}, {4});
    effect("store s", "train.store", {"next"}, {"s"});
    op("m", "train.dropout", {"w"}, {}, {4});
    attribute("ratio").set_number(0.5);
    attribute("op_id").set_integer(7);
    op("sum", "train.reduce_sum", {"h"}, {}, {});
    attribute("axes").mutable_integers()->add_values(0);
    effect("store loss", "train.store", {"sum"}, {"loss"});
    op("mww", "train.mul", {"m", "ww"}, {}, {4});
    op("terms", "train.add", {"mww", "ss"}, {}, {4});
    op("dw", "train.mul", {"terms", "h"}, {}, {4});
    effect("accumulate w", "train.accumulate", {"dw"}, {"w::gradient"});
    beginFunction("update");
    op("rate", "train.read", {}, {"rate"}, {}, proto::DTYPE_F64);
    op("step", "train.read", {}, {"step"}, {}, proto::DTYPE_I64);
    op("one", "train.constant", {}, {}, {}, proto::DTYPE_F64);
    attribute("value").set_number(1);
    effect("sgd w", "train.sgd", {"rate", "step", "one"}, {"w::gradient", "w"});
    attribute("momentum").set_number(0);
    attribute("weight_decay").set_number(0);
    attribute("nesterov").set_integer(0);
    effect("increment", "train.increment", {}, {"step"});
  }
};

/// Both forwards come before both backwards, so what a backward reads of its forward has two slots. What is of the
/// step, w^2, is computed once.
class TwoMicrobatches {
public:
  TwoMicrobatches() {
    compute = b.queue("compute");
    addStorage();
    for (const char *name : {"begin", "forward", "report", "backward", "add", "update"})
      b.routine(name);
    const Reference reference(b);
    b.fill(begin, compute, gradient);
    apply(reference, begin, "ww", ElementwiseOp::Mul, {w, w, ww});
    b.feed(forward, compute, 0, x);
    apply(reference, forward, "h", ElementwiseOp::Mul, {x, w, h});
    apply(reference, forward, "ss", ElementwiseOp::Mul, {s, s, ss});
    apply(reference, forward, "store s", ElementwiseOp::Add, {s, h, s});
    proto::Command &dropout = b.kernel(forward, compute, "dropout", "rw", {w, m});
    attribute(dropout, "ratio").set_number(0.5);
    attribute(dropout, "op_id").set_integer(7);
    reference.describe(dropout, "m");
    proto::Command &total = b.kernel(forward, compute, "reduce_sum", "rw", {h, sum});
    attribute(total, "axes").mutable_integers()->add_values(0);
    reference.describe(total, "sum");
    apply(reference, report, "store loss", ElementwiseOp::Copy, {sum, loss});
    apply(reference, backward, "mww", ElementwiseOp::Mul, {m, ww, mww});
    apply(reference, backward, "terms", ElementwiseOp::Add, {mww, ss, terms});
    apply(reference, backward, "dw", ElementwiseOp::Mul, {terms, h, dw});
    apply(reference, add, "accumulate w", ElementwiseOp::Add, {gradient, dw, gradient});
    proto::Command &sgd = b.kernel(update, compute, "sgd", "mrrrr", {w, gradient, rate, step, one});
    for (const char *name : {"momentum", "weight_decay"})
      attribute(sgd, name).set_number(0);
    attribute(sgd, "nesterov").set_integer(0);
    reference.describe(sgd, "sgd w");
    reference.describe(b.kernel(update, compute, "increment", "m", {step}), "increment");
    const uint32_t program = b.program("step");
    b.call(program, begin);
    for (const uint32_t routine : {forward, report, backward, add})
      for (const uint32_t microbatch : {0u, 1u})
        b.call(program, routine, microbatch);
    b.call(program, update, 1);
    b.metric(program, "loss", loss);
  }

  /// One place for the whole step, in which the last write counts.
  void keepInStep(const Tensor &tensor) { setScope(tensor, proto::Buffer::STEP); }
  /// The loss is no metric, but a variable that outlives the step.
  void keepLoss() {
    setScope(loss, proto::Buffer::PLAN);
    const auto variable = uint32_t(b.plan.variables_size() - 1);
    b.role().mutable_buffers(int(loss.buffer))->set_variable(variable);
    b.plan.mutable_variables(int(variable))->set_name("kept");
    b.role().mutable_programs(0)->clear_metrics();
  }
  /// The calls of a routine come in the other order.
  void turn(uint32_t routine) {
    for (proto::Call &call : *b.role().mutable_programs(0)->mutable_calls())
      if (call.routine() == routine)
        call.set_microbatch(1 - call.microbatch());
  }
  std::string verdict() { return verdictOf(b.plan, World::Closed); }

  static constexpr uint32_t begin = 0, forward = 1, report = 2, backward = 3, add = 4, update = 5;

  PlanBuilder b{4, 2};
  uint32_t compute;
  Tensor w, s, rate, step, one, gradient, ww, x, h, ss, m, sum, loss, mww, terms, dw;

private:
  void addStorage() {
    w = b.variable("w", DType::F32, {4}, 0.5);
    b.gradientOf(0);
    s = b.variable("s", DType::F32, {4}, 0, proto::Variable::BUFFER);
    rate = b.variable("rate", DType::F64, {}, 0.01, proto::Variable::CONSTANT);
    step = b.variable("step", DType::I64, {}, 0, proto::Variable::OPTIMIZER);
    one = b.variable("one", DType::F64, {}, 1, proto::Variable::CONSTANT);
    b.bareVariable("loss", DType::F32, {}, 0, proto::Variable::OPTIMIZER);
    b.input("x", DType::F32, {4});
    gradient = b.tensor("gradient", DType::F32, {4}, proto::Buffer::STEP);
    ww = b.tensor("ww", DType::F32, {4}, proto::Buffer::STEP);
    x = b.tensor("x", DType::F32, {4}, proto::Buffer::CALL);
    for (Tensor *kept : {&h, &ss, &m, &dw})
      *kept = b.tensor(kept == &h    ? "h"
                       : kept == &ss ? "ss"
                       : kept == &m  ? "m"
                                     : "dw",
                       DType::F32, {4}, proto::Buffer::SLOT, 2);
    sum = b.tensor("sum", DType::F32, {}, proto::Buffer::SLOT, 2);
    loss = b.tensor("loss", DType::F32, {}, proto::Buffer::STEP);
    mww = b.tensor("mww", DType::F32, {4}, proto::Buffer::CALL);
    terms = b.tensor("terms", DType::F32, {4}, proto::Buffer::CALL);
    for (const Tensor &of : {gradient, dw})
      b.role().mutable_buffers(int(of.buffer))->set_category(proto::Buffer::GRADIENTS);
  }
  void setScope(const Tensor &tensor, proto::Buffer::Scope scope) {
    proto::Buffer &buffer = *b.role().mutable_buffers(int(tensor.buffer));
    buffer.set_scope(scope);
    buffer.set_slots(1);
    buffer.clear_slot_offsets();
  }
  void apply(const Reference &reference, uint32_t routine, const char *name, ElementwiseOp op,
             const std::vector<Tensor> &operands) {
    const std::string accesses = std::string(operands.size() - 1, 'r') + "w";
    proto::Command &command = b.kernel(routine, compute, "elementwise", accesses, operands);
    setInstruction(command, int64_t(op), operands.size() > 2 ? std::vector<int64_t>{0, 1} : std::vector<int64_t>{0});
    reference.describe(command, name);
  }
};

TEST(Microbatch, ProvesAPlanThatKeepsThemApart) { EXPECT_EQ(TwoMicrobatches().verdict(), "proven"); }

TEST(Microbatch, RefusesAnothersValue) {
  using Plan = TwoMicrobatches;
  for (const auto kept : {&Plan::h, &Plan::ss, &Plan::m}) { // of samples, of what is handed on, drawn
    Plan plan;
    plan.keepInStep(plan.*kept);
    const std::string name = plan.b.role().buffers(int((plan.*kept).buffer)).name();
    const std::string verdict = plan.verdict();
    EXPECT_TRUE(verdict.starts_with("value: program step, call 5 (routine backward, micro-batch 0), command ") ||
                verdict.starts_with("value: program step, call 3 (routine report, micro-batch 0)"))
        << verdict;
    EXPECT_NE(verdict.find("(" + name + ") for micro-batch 0, but it holds that of micro-batch 1"), std::string::npos)
        << verdict;
  }
}

TEST(Microbatch, RefusesAGradientThatIsAddedAsAnothers) {
  TwoMicrobatches plan;
  plan.keepInStep(plan.dw);
  EXPECT_TRUE(plan.verdict().starts_with("meaning: program step, call 7 (routine add, micro-batch 0), command 0"))
      << plan.verdict();
  EXPECT_NE(plan.verdict().find("it adds parts of other values, but train.accumulate"), std::string::npos)
      << plan.verdict();
}

TEST(Microbatch, RefusesAMetricThatIsNotTheLasts) {
  TwoMicrobatches plan;
  plan.turn(TwoMicrobatches::report);
  EXPECT_EQ(plan.verdict(), "value: program step: metric loss is read from buffer " + std::to_string(plan.loss.buffer) +
                                " (loss), which holds that of micro-batch 0, not of the last one, 1");
}

/// Whatever sort of buffer it lies in.
TEST(Microbatch, RefusesWhatIsNotTheLastsAmongGradients) {
  for (const bool isKept : {false, true}) {
    TwoMicrobatches plan;
    plan.b.role().mutable_buffers(int(plan.loss.buffer))->set_category(proto::Buffer::GRADIENTS);
    if (isKept)
      plan.keepLoss();
    EXPECT_EQ(plan.verdict(), "proven");
    plan.turn(TwoMicrobatches::report);
    EXPECT_NE(plan.verdict().find(isKept ? "holds of kept what micro-batch 0 left"
                                         : "which holds that of micro-batch 0, not of the last one, 1"),
              std::string::npos)
        << plan.verdict();
  }
}

TEST(Microbatch, RefusesToLeaveWhatIsNotTheLasts) {
  TwoMicrobatches plan;
  plan.keepLoss();
  EXPECT_EQ(plan.verdict(), "proven");
  plan.turn(TwoMicrobatches::report);
  EXPECT_NE(plan.verdict().find("coverage: program step, rank 0: at its end buffer"), std::string::npos);
  EXPECT_NE(plan.verdict().find("holds of kept what micro-batch 0 left, not what the last one makes of it"),
            std::string::npos)
      << plan.verdict();
}

/// What forward leaves to it lives on then; the call is what is missing.
TEST(Microbatch, NamesACallThatIsLeftOut) {
  TwoMicrobatches plan;
  plan.b.role().mutable_programs(0)->mutable_calls()->DeleteSubrange(6, 1);
  const std::string verdict = plan.verdict();
  EXPECT_NE(verdict.find("outside the life that the plan gives it; one begins or ends in routine backward, which has "
                         "no call for micro-batch 1"),
            std::string::npos)
      << verdict;
}

/// One stage sends relu(x) of two micro-batches to another, from and to a buffer of the step.
struct TwoStages {
  TwoStages() {
    b.plan.clear_roles();
    proto::Axis &axis = *b.plan.mutable_world()->add_axes();
    axis.set_name("pipe");
    axis.set_size(2);
    b.input("x", DType::F32, {1});
    b.channel("there", 0, 0, 1);
    ReferenceBuilder reference(b);
    reference.value("x", proto::DTYPE_F32, {1});
    reference.op("h", "train.relu", {"x"}, {}, {1});
    addSender(reference);
    b.addRole("receiver", 1, 1);
    const uint32_t messages = b.queue("messages", proto::Queue::MESSAGE);
    b.receive(b.routine("forward"), messages, 0, b.tensor("h", DType::F32, {1}, proto::Buffer::STEP));
    callTwice();
  }

  void addSender(const ReferenceBuilder &reference) {
    b.addRole("sender", 0, 0);
    const uint32_t compute = b.queue("compute"), messages = b.queue("messages", proto::Queue::MESSAGE);
    const uint32_t made = b.event("made"), sent = b.event("sent"), forward = b.routine("forward");
    const Tensor x = b.tensor("x", DType::F32, {1}, proto::Buffer::CALL);
    const Tensor h = b.tensor("h", DType::F32, {1}, proto::Buffer::STEP);
    b.feed(forward, compute, 0, x);
    proto::Command &relu = b.kernel(forward, compute, "elementwise", "rw", {x, h});
    setInstruction(relu, int64_t(ElementwiseOp::Relu), {0});
    reference.describe(relu, "h");
    wait(relu, sent, 1);
    signal(relu, made);
    proto::Command &send = b.send(forward, messages, 0, h);
    wait(send, made);
    signal(send, sent);
    callTwice();
  }
  void callTwice() {
    const uint32_t step = b.program("step");
    for (const uint32_t microbatch : {0u, 1u})
      b.call(step, 0, microbatch);
  }

  PlanBuilder b{1, 2};
};

TEST(Microbatch, RefusesAMessageOfAnother) {
  TwoStages right;
  EXPECT_EQ(verdictOf(right.b.plan, World::Open), "proven");
  TwoStages wrong;
  auto &calls = *wrong.b.plan.mutable_roles(1)->mutable_programs(0)->mutable_calls();
  calls.SwapElements(0, 1);
  const std::string verdict = verdictOf(wrong.b.plan, World::Open);
  EXPECT_NE(verdict.find("receives for micro-batch 1 what its sender sends of micro-batch 0"), std::string::npos)
      << verdict;
}

} // namespace
} // namespace ds::check
