//===- SumsTest.cpp - sums of gradients are of one type, and no values ------===//
#include "compiler/check/Check.h"
#include "kernels/ElementwiseProgram.h"
#include "runtime/plan/format/PlanReader.h"
#include "test/unit/check/ReferenceBuilder.h"
#include "test/unit/check/UsedLives.h"
#include "test/unit/runtime/PlanBuilder.h"

#include <cstdint>
#include <gtest/gtest.h>
#include <string>
#include <vector>

namespace ds::check {
namespace {

using namespace ds::test;
using Tensor = PlanBuilder::Tensor;
using Collective = proto::CollectiveCommand;
using kernels::ElementwiseOp;

/// The gradient of w is g = d x, with d = x x, summed in bfloat16 and clipped by its norm.
class Reference : public ReferenceBuilder {
public:
  explicit Reference(PlanBuilder &b) : ReferenceBuilder(b) {
    value("x", proto::DTYPE_BF16, {4});
    op("d", "train.mul", {"x", "x"}, {}, {4}, proto::DTYPE_BF16);
    op("g", "train.mul", {"d", "x"}, {}, {4}, proto::DTYPE_BF16);
    effect("accumulate", "train.accumulate", {"g"}, {"w::gradient"});
    beginFunction("update");
    op("rate", "train.read", {}, {"rate"}, {}, proto::DTYPE_F64);
    op("step", "train.read", {}, {"step"}, {}, proto::DTYPE_I64);
    op("sum", "train.read", {}, {"w::gradient"}, {4}, proto::DTYPE_BF16);
    op("part", "train.block_sum_squares", {"sum"}, {}, {1}, proto::DTYPE_F64);
    op("norm", "train.global_norm", {"part"}, {}, {}, proto::DTYPE_F64);
    op("clip", "train.clip_factor", {"norm"}, {}, {}, proto::DTYPE_F64);
    attribute("max_norm").set_number(1);
    effect("sgd", "train.sgd", {"rate", "step", "clip"}, {"w::gradient", "w"});
    attribute("momentum").set_number(0);
    attribute("weight_decay").set_number(0);
    attribute("nesterov").set_integer(0);
    effect("increment", "train.increment", {}, {"step"});
  }
};

/// The plan of one rank or of two, with places for commands that should not be there.
class SixteenBits {
public:
  explicit SixteenBits(uint32_t ranks = 1) : reference_(withStorage(b, *this, ranks)) {
    compute = b.queue("compute");
    collective = b.queue("collective", proto::Queue::COLLECTIVE);
    for (const char *name : {"begin", "make", "change", "add", "reduce", "round", "update"})
      b.routine(name);
    b.fill(begin, compute, gradient);
    b.fill(begin, compute, second);
    b.feed(make, compute, 0, x);
    reference_.describe(apply(make, ElementwiseOp::Mul, {x, x, d}), "d");
    product = &apply(add, ElementwiseOp::Mul, {d, x, g});
    reference_.describe(*product, "g");
    reference_.describe(apply(add, ElementwiseOp::Add, {gradient, g, gradient}), "accumulate");
    if (ranks > 1)
      reduced(reduce, gradient);
    addUpdate();
    const uint32_t program = b.program("step");
    b.call(program, begin);
    for (const uint32_t microbatch : {0u, 1u})
      for (const uint32_t routine : {make, change, add})
        b.call(program, routine, microbatch);
    for (const uint32_t routine : {reduce, round, update})
      b.call(program, routine, 1);
  }

  proto::Command &apply(uint32_t routine, ElementwiseOp op, const std::vector<Tensor> &operands,
                        proto::DType type = proto::DTYPE_BF16) {
    const std::string accesses = std::string(operands.size() - 1, 'r') + "w";
    proto::Command &command = b.kernel(routine, compute, "elementwise", accesses, operands);
    setInstruction(command, int64_t(op), operands.size() > 2 ? std::vector<int64_t>{0, 1} : std::vector<int64_t>{0},
                   type);
    return command;
  }
  /// A sum over the ranks in place, for which compute waits before and after.
  void reduced(uint32_t routine, const Tensor &tensor) {
    const uint32_t before = b.event("before " + std::to_string(routine)),
                   after = b.event("after " + std::to_string(routine));
    const Tensor mark = b.tensor("mark", DType::F32, {}, proto::Buffer::CALL);
    signal(b.fill(routine, compute, mark), before);
    proto::Command &sum = b.collective(routine, collective, Collective::ALL_REDUCE, tensor, tensor);
    wait(sum, before);
    signal(sum, after);
    wait(b.fill(routine, compute, mark), after);
  }
  /// Which buffer and type the optimizer, or another command, reads its gradient as.
  static void read(proto::Command &command, int operand, const Tensor &tensor, proto::DType type) {
    command.mutable_kernel()->mutable_operands(operand)->set_buffer(tensor.buffer);
    command.mutable_kernel()->mutable_operands(operand)->set_dtype(type);
  }
  proto::Command &command(uint32_t routine, int index) {
    return *b.role().mutable_routines(int(routine))->mutable_commands(index);
  }
  static Tensor as(Tensor tensor, DType dtype) {
    tensor.dtype = dtype;
    return tensor;
  }
  std::string verdict() {
    setLivesAsUsed(b.role());
    plan::validatePlan(b.plan);
    const std::optional<Finding> finding = checkPlan(b.plan, World::Closed);
    return finding ? finding->rule + ": " + finding->sentence : "proven";
  }

  static constexpr uint32_t begin = 0, make = 1, change = 2, add = 3, reduce = 4, round = 5, update = 6;
  static constexpr int squares = 0, sgd = 3; ///< of routine update

  PlanBuilder b{4, 2};
  uint32_t compute, collective;
  Tensor w, rate, step, gradient, second, x, d, e, g, partial, norm, clip;
  proto::Command *product;

private:
  static PlanBuilder &withStorage(PlanBuilder &b, SixteenBits &own, uint32_t ranks) {
    own.addStorage();
    b.plan.set_numerics("lossy");
    if (ranks > 1)
      b.ranks(ranks);
    return b;
  }
  void addStorage() {
    w = b.variable("w", DType::F32, {4}, 0.5);
    b.plan.mutable_variables(int(b.gradientOf(0)))->set_dtype(proto::DTYPE_BF16);
    rate = b.variable("rate", DType::F64, {}, 0.01, proto::Variable::CONSTANT);
    step = b.variable("step", DType::I64, {}, 0, proto::Variable::OPTIMIZER);
    b.input("x", DType::BF16, {4});
    gradient = b.tensor("gradient", DType::BF16, {4}, proto::Buffer::STEP);
    second = b.tensor("second", DType::BF16, {4}, proto::Buffer::STEP);
    x = b.tensor("x", DType::BF16, {4}, proto::Buffer::STEP);
    d = b.tensor("d", DType::BF16, {4}, proto::Buffer::STEP);
    e = b.tensor("e", DType::BF16, {4}, proto::Buffer::STEP);
    g = b.tensor("g", DType::BF16, {4}, proto::Buffer::CALL);
    partial = b.tensor("partial", DType::F64, {1}, proto::Buffer::CALL);
    norm = b.tensor("norm", DType::F64, {}, proto::Buffer::CALL);
    clip = b.tensor("clip", DType::F64, {}, proto::Buffer::CALL);
    for (const Tensor &of : {gradient, second, d, e})
      b.role().mutable_buffers(int(of.buffer))->set_category(proto::Buffer::GRADIENTS);
  }
  void addUpdate() {
    b.kernel(update, compute, "block_sum_squares", "rw", {gradient, partial}); // names no op: of a slice, it could not
    attribute(command(update, squares), "block").set_integer(1024);
    proto::Command &root = b.kernel(update, compute, "global_norm", "rw", {partial, norm});
    attribute(root, "blocks").mutable_integers()->add_values(1024);
    reference_.describe(root, "norm");
    proto::Command &factor = b.kernel(update, compute, "clip_factor", "rw", {norm, clip});
    attribute(factor, "max_norm").set_number(1);
    reference_.describe(factor, "clip");
    proto::Command &updates = b.kernel(update, compute, "sgd", "mrrrr", {w, gradient, rate, step, clip});
    for (const char *name : {"momentum", "weight_decay"})
      attribute(updates, name).set_number(0);
    attribute(updates, "nesterov").set_integer(0);
    reference_.describe(updates, "sgd");
    reference_.describe(b.kernel(update, compute, "increment", "m", {step}), "increment");
  }

  const Reference reference_;
};

using Plan = SixteenBits;
constexpr const char *asAnother = "it takes w::gradient as elements of another type";

TEST(Sums, AcceptsPlansThatAreRight) {
  EXPECT_EQ(Plan().verdict(), "proven");
  EXPECT_EQ(Plan(2).verdict(), "proven");
}

TEST(Sums, RefusesSquaresOfAnotherType) {
  Plan plan;
  Plan::read(plan.command(Plan::update, Plan::squares), 0, plan.gradient, proto::DTYPE_F16);
  EXPECT_NE(plan.verdict().find(asAnother), std::string::npos) << plan.verdict();
}

TEST(Sums, RefusesAnUpdateByWhatWasRoundedToAnotherType) {
  Plan plan;
  plan.apply(Plan::round, ElementwiseOp::Cast, {plan.gradient, Plan::as(plan.second, DType::F16)}, proto::DTYPE_F16);
  Plan::read(plan.command(Plan::update, Plan::sgd), 1, plan.second, proto::DTYPE_BF16);
  EXPECT_NE(plan.verdict().find("as elements of another type"), std::string::npos) << plan.verdict();
}

TEST(Sums, RefusesToAddAsAnotherType) {
  Plan plan;
  const Tensor sum = Plan::as(plan.gradient, DType::F16), zeros = Plan::as(plan.second, DType::F16);
  plan.apply(Plan::round, ElementwiseOp::Add, {sum, zeros, zeros}, proto::DTYPE_F16);
  Plan::read(plan.command(Plan::update, Plan::sgd), 1, plan.second, proto::DTYPE_BF16);
  EXPECT_NE(plan.verdict().find(asAnother), std::string::npos) << plan.verdict();
}

/// Twice a value is not the value, though both lie among gradients.
TEST(Sums, RefusesASumInPlaceOfItsValue) {
  Plan plan;
  plan.apply(Plan::change, ElementwiseOp::Add, {plan.d, plan.d, plan.e});
  Plan::read(*plan.product, 0, plan.e, proto::DTYPE_BF16);
  EXPECT_NE(plan.verdict().find("it does not compute train.mul g, as it is said to, of what its operands hold"),
            std::string::npos)
      << plan.verdict();
}

TEST(Sums, RefusesASumOverRanksInPlaceOfItsValue) {
  Plan plan(2);
  plan.reduced(Plan::change, plan.d);
  EXPECT_NE(plan.verdict().find("it does not compute train.mul g, as it is said to, of what its operands hold"),
            std::string::npos)
      << plan.verdict();
}

} // namespace
} // namespace ds::check
