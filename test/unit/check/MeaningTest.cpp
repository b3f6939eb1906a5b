//===- MeaningTest.cpp - commands against what their reference ops say ----===//
#include "compiler/check/meaning/Meaning.h"
#include "compiler/check/meaning/CallRules.h"

#include <array>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace ds::check {
namespace {

/// y = x w; z = y + y; loss gradient 0.5; w is trained by SGD without momentum.
constexpr const char *program = R"(
  variables { name: "w" dtype: DTYPE_F32 shape: [4, 4] kind: PARAMETER }
  variables { name: "w::gradient" dtype: DTYPE_F32 shape: [4, 4] kind: GRADIENT }
  reference {
    values { name: "x" dtype: DTYPE_F32 shape: [4, 4] }
    values { name: "w" dtype: DTYPE_F32 shape: [4, 4] }
    values { name: "y" dtype: DTYPE_F32 shape: [4, 4] }
    values { name: "z" dtype: DTYPE_F32 shape: [4, 4] }
    values { name: "flat" dtype: DTYPE_F32 shape: [16] }
    values { name: "half" dtype: DTYPE_F32 }
    ops { op: "train.read" results: 1 variables: 0 function: "microbatch" }
    ops { op: "train.matmul" name: "dense" operands: [0, 1] results: 2 function: "microbatch"
          attributes { name: "trans_b" integer: 1 } }
    ops { op: "train.add" name: "twice" operands: [2, 2] results: 3 function: "microbatch" }
    ops { op: "train.reshape" operands: 3 results: 4 function: "microbatch" }
    ops { op: "train.loss_gradient" results: 5 function: "microbatch" attributes { name: "scale" number: 0.5 } }
    ops { op: "train.accumulate" operands: 3 variables: 1 function: "microbatch" }
    ops { op: "train.sgd" operands: [5, 5, 5] variables: [1, 0] function: "update"
          attributes { name: "weight_decay" number: 0.1 } }
  })";

constexpr const char *matmul = R"(
  reference: 1
  kernel { kernel: "matmul"
    operands { access: READ dtype: DTYPE_F32 shape: [4, 4] } operands { access: READ dtype: DTYPE_F32 shape: [4, 4] } operands { access: WRITE dtype: DTYPE_F32 shape: [4, 4] }
    attributes { name: "trans_a" integer: 0 } attributes { name: "trans_b" integer: 1 } attributes { name: "bias" integer: 0 } })";

constexpr const char *doubling = R"(
  reference: 2
  kernel { kernel: "elementwise"
    operands { buffer: 1 access: READ dtype: DTYPE_F32 shape: [4, 4] } operands { buffer: 2 access: WRITE dtype: DTYPE_F32 shape: [4, 4] }
    attributes { name: "program" integers { values: [10, 7, 0, 0, -1] } }
    attributes { name: "constants" numbers {} }
    attributes { name: "results" integers { values: [1] } } })";

constexpr const char *accumulation = R"(
  reference: 5
  kernel { kernel: "elementwise"
    operands { buffer: 5 access: READ dtype: DTYPE_F32 shape: [4, 4] } operands { buffer: 6 access: READ dtype: DTYPE_F32 shape: [4, 4] } operands { buffer: 5 access: WRITE dtype: DTYPE_F32 shape: [4, 4] }
    attributes { name: "program" integers { values: [10, 7, 0, 1, -1] } }
    attributes { name: "constants" numbers {} }
    attributes { name: "results" integers { values: [2] } } })";

constexpr const char *update = R"(
  kernel { kernel: "sgd"
    operands { access: READ_WRITE dtype: DTYPE_F32 } operands { access: READ dtype: DTYPE_F32 }
    operands { access: READ } operands { access: READ } operands { access: READ }
    attributes { name: "weight_decay" number: 0.1 } })";

struct Case {
  proto::Plan plan;
  Meaning meaning;
  proto::Command command;

  static proto::Plan parse(const char *text) {
    proto::Plan plan;
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &plan));
    return plan;
  }
  explicit Case(const char *text, const char *of = program) : plan(parse(of)), meaning(plan) {
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &command));
  }
  uint32_t value(uint32_t reference) { return meaning.values().of(reference); }

  /// The sentence of the refusal, or "".
  std::string refusal(std::vector<uint32_t> held) {
    return sentenceOf([&] { meaning.resultsOf(command, held); });
  }
  /// Of a plan that has the command, wherever it runs.
  std::string callRefusal() const {
    proto::Plan whole;
    proto::Role &role = *whole.add_roles();
    role.add_queues();
    *role.add_routines()->add_commands() = command;
    return sentenceOf([&] { requireCalls(whole); });
  }

private:
  template <typename Check> static std::string sentenceOf(Check check) {
    try {
      check();
    } catch (const Mismatch &mismatch) {
      return mismatch.sentence;
    }
    return "";
  }
};

TEST(Meaning, FollowsAValueThroughItsKernel) {
  Case one(matmul);
  const auto results = one.meaning.resultsOf(one.command, std::vector<uint32_t>{one.value(0), one.value(1), 0});
  EXPECT_EQ(results[2].value, one.value(2));
}

/// Columns of x and of w, which is transposed, in halves; `repeat` ranks beside each other have the same half.
struct Halves : Case {
  explicit Halves(uint64_t repeat) : Case(matmul) {
    proto::Axis &tensor = *plan.mutable_world()->add_axes();
    tensor.set_name("tensor");
    tensor.set_size(uint32_t(2 * repeat));
    spread.cut = {4, 2, 2, {{0, 1, 1}}, repeat};
    proto::Attribute &pieces = *command.mutable_kernel()->add_attributes(); // without which a call has no factors
    pieces.set_name("pieces");
    pieces.set_integer(0);
    for (int operand : {0, 1})
      command.mutable_kernel()->mutable_operands(operand)->set_shape(1, 2);
  }
  uint32_t half(uint32_t reference) { return meaning.values().placed(value(reference), spread); }

  Spread spread{0};
};

TEST(Meaning, MakesTermsOfPartsThatAreSummed) {
  Halves halves(1);
  const uint32_t result =
      halves.meaning.resultsOf(halves.command, std::vector<uint32_t>{halves.half(0), halves.half(1), 0})[2].value;
  EXPECT_EQ(halves.meaning.values().name(result), "SUM-terms of train.matmul dense along axis tensor");
  plan::AxisSet tensor;
  tensor.add(0);
  EXPECT_EQ(halves.meaning.values().addedUp(result, tensor), halves.value(2));
}

TEST(Meaning, RefusesTermsThatWouldCountTwice) {
  Halves halves(2);
  EXPECT_EQ(
      halves.refusal({halves.half(0), halves.half(1), 0}),
      "kernel matmul makes terms of what 2 neighbours along axis tensor have alike, so their sum would count them "
      "as often");
}

TEST(Meaning, RefusesAPartBesideAWhole) {
  Halves halves(1);
  EXPECT_NE(
      halves.refusal({halves.half(0), halves.value(1), 0}).find("where other operands hold parts along axis tensor"),
      std::string::npos);
}

TEST(Meaning, UnknownOperandsAreNotRefused) { EXPECT_EQ(Case(matmul).refusal({0, 0, 0}), ""); }

TEST(Meaning, RefusesAnotherOperand) {
  Case one(matmul);
  EXPECT_EQ(one.refusal({one.value(1), one.value(1), 0}), "operand 0 holds w, but train.matmul dense takes input x");
  EXPECT_EQ(one.refusal({one.value(0), Values::other, 0}),
            "operand 1 holds parts of other values, but train.matmul dense takes w");
}

TEST(Meaning, RefusesAnotherAttribute) {
  Case one(matmul);
  one.command.mutable_kernel()->mutable_attributes(1)->set_integer(0);
  EXPECT_EQ(one.refusal({0, 0, 0}), "its attribute trans_b is not that of train.matmul dense");
  one.command.mutable_kernel()->mutable_attributes(1)->set_integer(1);
  one.command.mutable_kernel()->mutable_attributes(0)->set_integer(1); // which the op leaves out: off
  EXPECT_EQ(one.refusal({0, 0, 0}), "its attribute trans_a is not that of train.matmul dense");
}

TEST(Meaning, RefusesAnotherKernelAndAnotherAccess) {
  Case one(matmul), sum(accumulation);
  EXPECT_EQ(sum.callRefusal(), "");
  sum.command.mutable_kernel()->mutable_operands(2)->set_access(proto::Operand::READ);
  EXPECT_EQ(sum.callRefusal(),
            "role , routine , command 0: operand 2 of kernel elementwise is said to be READ, but the "
            "kernel's row says WRITE");
  one.command.mutable_kernel()->set_kernel("gather");
  EXPECT_EQ(one.refusal({0, 0, 0}), "kernel gather is not train.matmul dense, which it is said to be");
}

TEST(Meaning, RunsElementwiseProgramsOnValues) {
  Case one(doubling);
  EXPECT_EQ(one.meaning.resultsOf(one.command, std::vector<uint32_t>{one.value(2), 0})[1].value, one.value(3));
  EXPECT_EQ(one.value(3), one.value(4)); // a reshape keeps the bytes
  one.command.mutable_kernel()->mutable_attributes(0)->mutable_integers()->set_values(0, 12);
  EXPECT_EQ(one.refusal({one.value(2), 0}),
            "it does not compute train.add twice, as it is said to, of what its operands hold");
}

TEST(Meaning, AccumulatesWhatTheReferenceAccumulates) {
  Case one(accumulation);
  const auto results = one.meaning.resultsOf(one.command, std::vector<uint32_t>{0, one.value(3), 0});
  EXPECT_EQ(results[2].value, one.meaning.values().variable(1));
  EXPECT_EQ(results[2].added, one.value(3));
  EXPECT_NE(one.refusal({0, one.value(2), 0}).find("it adds train.matmul dense"), std::string::npos);
  one.command.mutable_kernel()->mutable_operands(0)->set_buffer(7);
  EXPECT_NE(one.refusal({0, 0, 0}).find("does not add to what it writes"), std::string::npos);
  auto &instruction = *one.command.mutable_kernel()->mutable_attributes(0)->mutable_integers();
  instruction.set_values(0, 12);
  EXPECT_EQ(one.refusal({0, 0, 0}), "it does not add, as train.accumulate does");
}

/// It adds what it writes to itself, or writes what it adds.
TEST(Meaning, RefusesAnAccumulationThatLeavesATermOut) {
  Case twice(accumulation), copy(accumulation);
  twice.command.mutable_kernel()->mutable_attributes(0)->mutable_integers()->set_values(3, 0);
  EXPECT_EQ(twice.refusal({0, twice.value(3), 0}), "it does not add, as train.accumulate does");
  copy.command.mutable_kernel()->mutable_attributes(2)->mutable_integers()->set_values(0, 1);
  EXPECT_EQ(copy.refusal({0, copy.value(3), 0}), "it does not add, as train.accumulate does");
}

TEST(Meaning, TermsHaveNoOrder) {
  Case one(doubling);
  const uint32_t x = one.value(0), w = one.value(1);
  for (const auto &[opcode, isSame] : {std::pair(10, true), {11, false}, {12, true}, {13, false}})
    EXPECT_EQ(one.meaning.values().apply(opcode, proto::DTYPE_F32, std::vector{x, w}, 16) ==
                  one.meaning.values().apply(opcode, proto::DTYPE_F32, std::vector{w, x}, 16),
              isSame);
}

TEST(Meaning, VerifiesUpdates) {
  Case one(update);
  const uint32_t half = one.meaning.values().constant(0.5, proto::DTYPE_F32);
  EXPECT_EQ(one.meaning.requireUpdate(one.command, 0, std::vector<uint32_t>{0, 0, half, half, half}, false).added,
            one.value(3));
  const auto refusal = [&](uint32_t parameter, std::vector<uint32_t> held) -> std::string {
    try {
      one.meaning.requireUpdate(one.command, parameter, held, false);
    } catch (const Mismatch &mismatch) {
      return mismatch.sentence;
    }
    return "";
  };
  EXPECT_NE(refusal(0, {0, 0, one.meaning.values().constant(0.25, proto::DTYPE_F32), half, half})
                .find("holds the constant 0.25"),
            std::string::npos);
  EXPECT_EQ(refusal(1, {0, 0, half, half, half}), "it updates w::gradient, which is no parameter");
  one.command.mutable_kernel()->mutable_attributes(0)->set_number(0.2);
  EXPECT_NE(refusal(0, {0, 0, half, half, half}).find("attribute weight_decay"), std::string::npos);
}

/// SGD of w, of `dtype`, by a factor that follows from a norm.
std::string clippedProgram(const std::string &dtype) {
  return R"(
  variables { name: "w" dtype: )" +
         dtype + R"( shape: [4, 4] kind: PARAMETER }
  variables { name: "w::gradient" dtype: )" +
         dtype + R"( shape: [4, 4] kind: GRADIENT }
  reference {
    values { name: "rate" dtype: DTYPE_F64 } values { name: "norm" dtype: DTYPE_F64 } values { name: "clip" dtype: DTYPE_F64 }
    ops { op: "train.clip_factor" operands: 1 results: 2 function: "update" attributes { name: "max_norm" number: 1 } }
    ops { op: "train.sgd" operands: [0, 0, 2] variables: [0, 1] function: "update"
          attributes { name: "weight_decay" number: 0.1 } }
  })";
}

TEST(Meaning, NumbersWhatAnUpdateMakesOfAVariable) {
  Case one(update, clippedProgram("DTYPE_F32").c_str());
  Values &values = one.meaning.values();
  using Version = Values::Version;
  std::set<uint32_t> numbers;
  for (const uint32_t variable : {0u, 1u, Values::noVariable})
    for (const Version version : {Version::Old, Version::Updated, Version::ByOne}) {
      const uint32_t number = values.variable(variable, version);
      EXPECT_TRUE(numbers.insert(number).second);
      EXPECT_EQ(values.heldIn(number), (Values::Held{variable, version}));
      EXPECT_EQ(values.isPadding(number), variable == Values::noVariable);
    }
  EXPECT_EQ(values.name(values.variable(0, Version::Updated)), "w after its update");
  EXPECT_EQ(values.type(values.variable(0, Version::Updated)).elements, 16u);
  EXPECT_FALSE(values.heldIn(values.converted(values.variable(0), proto::DTYPE_BF16)).has_value());
  EXPECT_FALSE(values.heldIn(one.value(2)).has_value());
}

TEST(Meaning, TakesTheConstantOneForAFactorThatIsOne) {
  for (const std::string dtype : {"DTYPE_F32", "DTYPE_F64"}) {
    Case one(update, clippedProgram(dtype).c_str());
    for (int i : {0, 1})
      one.command.mutable_kernel()->mutable_operands(i)->set_dtype(one.plan.variables(0).dtype());
    Values &values = one.meaning.values();
    EXPECT_TRUE(one.meaning.isFactor(one.value(2)));
    EXPECT_FALSE(one.meaning.isFactor(one.value(1)));
    EXPECT_FALSE(one.meaning.isFactor(values.converted(one.value(2), proto::DTYPE_F32))); // may be rounded
    const auto verdict = [&](uint32_t held, bool mayTakeOne) -> std::string {
      try {
        const std::vector<uint32_t> operands = {0, 0, one.value(0), one.value(0), held};
        const auto oneFor = one.meaning.requireUpdate(one.command, 0, operands, mayTakeOne).oneFor;
        return oneFor ? "1 for " + values.name(*oneFor) : "right";
      } catch (const Mismatch &mismatch) {
        return mismatch.sentence;
      }
    };
    const uint32_t number = values.constant(1, proto::DTYPE_F64), half = values.constant(0.5, proto::DTYPE_F64);
    const std::string refused = "operand 4 holds the constant 1.000000, but the update of w takes train.clip_factor";
    EXPECT_EQ(verdict(one.value(2), false), "right");
    EXPECT_EQ(verdict(number, false), refused);
    EXPECT_EQ(verdict(one.value(2), true), "right");
    EXPECT_EQ(verdict(number, true), "1 for train.clip_factor");
    EXPECT_NE(verdict(half, true).find("operand 4 holds the constant 0.5"), std::string::npos);
  }
}

/// g = gelu(x w); the gradient of x w is (d w) times the slope.
constexpr const char *withGelu = R"(
  reference {
    values { name: "x" dtype: DTYPE_BF16 shape: [4, 4] }
    values { name: "w" dtype: DTYPE_BF16 shape: [4, 4] }
    values { name: "d" dtype: DTYPE_BF16 shape: [4, 4] }
    values { name: "y" dtype: DTYPE_BF16 shape: [4, 4] } values { dtype: DTYPE_F32 shape: [4, 4] }
    values { dtype: DTYPE_F32 shape: [4, 4] } values { name: "g" dtype: DTYPE_BF16 shape: [4, 4] }
    values { name: "dw" dtype: DTYPE_BF16 shape: [4, 4] } values { dtype: DTYPE_F32 shape: [4, 4] }
    values { dtype: DTYPE_F32 shape: [4, 4] } values { dtype: DTYPE_F32 shape: [4, 4] } values { name: "dy" dtype: DTYPE_BF16 shape: [4, 4] }
    ops { op: "train.matmul" name: "dense" operands: [0, 1] results: 3 function: "microbatch" }
    ops { op: "train.cast" operands: 3 results: 4 function: "microbatch" }
    ops { op: "train.gelu_tanh" operands: 4 results: 5 function: "microbatch" }
    ops { op: "train.cast" operands: 5 results: 6 function: "microbatch" }
    ops { op: "train.matmul" name: "back" operands: [2, 1] results: 7 function: "microbatch" }
    ops { op: "train.cast" operands: 7 results: 8 function: "microbatch" }
    ops { op: "train.gelu_tanh_slope" operands: 4 results: 9 function: "microbatch" }
    ops { op: "train.mul" operands: [8, 9] results: 10 function: "microbatch" }
    ops { op: "train.cast" operands: 10 results: 11 function: "microbatch" }
  })";

constexpr const char *product = R"(
  reference: [0, 1, 2, 3]
  kernel { kernel: "matmul"
    operands { access: READ dtype: DTYPE_BF16 shape: [4, 4] } operands { access: READ dtype: DTYPE_BF16 shape: [4, 4] }
    operands { access: WRITE dtype: DTYPE_BF16 shape: [4, 4] } operands { access: WRITE dtype: DTYPE_BF16 shape: [4, 4] }
    attributes { name: "trans_a" integer: 0 } attributes { name: "trans_b" integer: 0 } attributes { name: "pieces" integer: 0 }
    attributes { name: "bias" integer: 0 } attributes { name: "epilogue" text: "gelu_tanh" } })";

constexpr const char *gradient = R"(
  reference: [4, 5, 6, 7, 8]
  kernel { kernel: "matmul"
    operands { access: READ dtype: DTYPE_BF16 shape: [4, 4] } operands { access: READ dtype: DTYPE_BF16 shape: [4, 4] }
    operands { access: READ dtype: DTYPE_BF16 shape: [4, 4] } operands { access: WRITE dtype: DTYPE_BF16 shape: [4, 4] }
    attributes { name: "trans_a" integer: 0 } attributes { name: "trans_b" integer: 0 } attributes { name: "pieces" integer: 0 }
    attributes { name: "bias" integer: 0 } attributes { name: "epilogue" text: "gelu_tanh_grad" } })";

TEST(Meaning, FollowsGeluThroughAProduct) {
  Case one(product, withGelu);
  EXPECT_EQ(one.refusal({one.value(0), one.value(1), 0, 0}), "");
  const auto both = one.meaning.resultsOf(one.command, std::vector<uint32_t>{one.value(0), one.value(1), 0, 0});
  EXPECT_EQ(both[2].value, one.value(6));
  EXPECT_EQ(both[3].value, one.value(3));
  EXPECT_EQ(one.refusal({one.value(1), one.value(0), 0, 0}),
            "operand 0 holds input w, but train.matmul dense takes input x");
  Case back(gradient, withGelu);
  const uint32_t d = back.value(2), w = back.value(1);
  EXPECT_EQ(back.meaning.resultsOf(back.command, std::vector<uint32_t>{d, w, back.value(3), 0})[3].value,
            back.value(11));
  EXPECT_EQ(back.refusal({d, w, back.value(6), 0}), // the slope at another value
            "it does not compute train.gelu_tanh_slope, as it is said to, of what its operands hold");
}

TEST(Meaning, RefusesAProductThatIsNotItsEpilogues) {
  Case narrow(product, withGelu), tall(gradient, withGelu), few(product, withGelu), other(product, withGelu),
      more(product, withGelu);
  narrow.command.mutable_kernel()->mutable_attributes(2)->set_integer(1); // pieces of a machine with a thread
  EXPECT_EQ(narrow.callRefusal(), "");
  narrow.command.mutable_kernel()->mutable_operands(2)->set_dtype(proto::DTYPE_F32);
  EXPECT_NE(narrow.callRefusal(), "");
  tall.command.mutable_kernel()->mutable_operands(2)->set_shape(0, 8);
  EXPECT_EQ(tall.refusal({tall.value(2), tall.value(1), 0, 0}),
            "operands 2 and 3 of kernel matmul have different shapes");
  few.command.mutable_kernel()->mutable_operands()->RemoveLast();
  EXPECT_EQ(few.refusal({few.value(0), few.value(1), 0}), "kernel 'matmul': takes 4 operands, not 3");
  other.command.set_reference(0, 2);
  EXPECT_EQ(other.refusal({other.value(4), other.value(1), 0, 0}),
            "kernel matmul computes train.matmul, but names no such reference op");
  more.command.add_reference(7);
  EXPECT_EQ(more.refusal({more.value(0), more.value(1), 0, 0}),
            "it does not compute train.mul, as it is said to, of what its operands hold");
}

/// The mean cross entropy of logits x, and its gradient times g.
constexpr const char *withLoss = R"(
  reference {
    values { name: "x" dtype: DTYPE_BF16 shape: [4, 8] }
    values { name: "labels" dtype: DTYPE_I64 shape: [4] }
    values { name: "g" dtype: DTYPE_F32 }
    values { name: "loss" dtype: DTYPE_F32 } values { name: "lse" dtype: DTYPE_F32 shape: [4] }
    values { name: "dx" dtype: DTYPE_BF16 shape: [4, 8] }
    ops { op: "train.cross_entropy" name: "ce" operands: [0, 1] results: [3, 4] function: "microbatch"
          attributes { name: "ignore_index" integer: -100 } attributes { name: "reduction" text: "mean" } }
    ops { op: "train.cross_entropy_grad" name: "ce" operands: [0, 1, 4, 2] results: 5 function: "microbatch"
          attributes { name: "ignore_index" integer: -100 } attributes { name: "reduction" text: "mean" } }
  })";

constexpr const char *lossWithGradient = R"(
  reference: [0, 1]
  kernel { kernel: "cross_entropy_with_grad"
    operands { access: READ dtype: DTYPE_BF16 shape: [4, 8] } operands { access: READ dtype: DTYPE_I64 shape: [4] }
    operands { access: READ dtype: DTYPE_F32 } operands { access: WRITE dtype: DTYPE_F32 }
    operands { access: WRITE dtype: DTYPE_F32 shape: [4] } operands { access: WRITE dtype: DTYPE_BF16 shape: [4, 8] }
    attributes { name: "ignore_index" integer: -100 } attributes { name: "reduction" text: "mean" } })";

TEST(Meaning, FollowsALossAndItsGradient) {
  Case one(lossWithGradient, withLoss);
  const std::vector<uint32_t> held = {one.value(0), one.value(1), one.value(2), 0, 0, 0};
  const auto results = one.meaning.resultsOf(one.command, held);
  EXPECT_EQ(results[3].value, one.value(3));
  EXPECT_EQ(results[4].value, one.value(4));
  EXPECT_EQ(results[5].value, one.value(5));
}

TEST(Meaning, RefusesALossThatIsNotItsGradients) {
  Case held(lossWithGradient, withLoss), sum(lossWithGradient, withLoss), turned(lossWithGradient, withLoss),
      alone(lossWithGradient, withLoss), narrow(lossWithGradient, withLoss), written(lossWithGradient, withLoss);
  const std::vector<uint32_t> right = {held.value(0), held.value(1), held.value(2), 0, 0, 0};
  EXPECT_EQ(held.refusal({held.value(5), held.value(1), held.value(2), 0, 0, 0}),
            "operand 0 holds train.cross_entropy_grad ce, but train.cross_entropy ce takes input x");
  EXPECT_EQ(held.refusal({held.value(0), held.value(1), held.value(3), 0, 0, 0}),
            "operand 3 holds result 0 of train.cross_entropy ce, but train.cross_entropy_grad ce takes input g");
  sum.command.mutable_kernel()->mutable_attributes(1)->set_text("sum");
  EXPECT_EQ(sum.refusal(right), "its attribute reduction is not that of train.cross_entropy ce");
  turned.command.set_reference(0, 1);
  turned.command.set_reference(1, 0);
  EXPECT_EQ(turned.refusal(right), "");
  alone.command.mutable_reference()->RemoveLast();
  EXPECT_EQ(alone.refusal(right),
            "kernel cross_entropy_with_grad computes train.cross_entropy_grad, but names no such reference op");
  narrow.command.mutable_kernel()->mutable_operands(5)->set_dtype(proto::DTYPE_F16);
  EXPECT_EQ(narrow.refusal(right),
            "operand 4 is float16 [4, 8], but train.cross_entropy_grad ce has bfloat16 [4, 8] there");
  written.command.mutable_kernel()->mutable_operands(4)->set_access(proto::Operand::READ);
  EXPECT_EQ(written.callRefusal(),
            "role , routine , command 0: operand 4 of kernel cross_entropy_with_grad is said to be "
            "READ, but the kernel's row says WRITE");
}

/// y = rms_norm(x), where x is the sum of a, in 16 bits, and r, rounded.
constexpr const char *withNorm = R"(
  reference {
    values { name: "a" dtype: DTYPE_BF16 shape: [2, 3, 4] } values { name: "r" dtype: DTYPE_F32 shape: [2, 3, 4] }
    values { name: "scale" dtype: DTYPE_F32 shape: [4] }
    values { dtype: DTYPE_F32 shape: [2, 3, 4] } values { name: "sum" dtype: DTYPE_F32 shape: [2, 3, 4] }
    values { name: "x" dtype: DTYPE_BF16 shape: [2, 3, 4] }
    values { name: "y" dtype: DTYPE_BF16 shape: [2, 3, 4] } values { name: "rrms" dtype: DTYPE_F32 shape: [2, 3] }
    values { name: "e" dtype: DTYPE_F32 shape: [2, 3, 4] }
    ops { op: "train.cast" operands: 0 results: 3 function: "microbatch" }
    ops { op: "train.add" name: "sum" operands: [1, 3] results: 4 function: "microbatch" }
    ops { op: "train.cast" name: "round" operands: 4 results: 5 function: "microbatch" }
    ops { op: "train.rms_norm" name: "norm" operands: [5, 2] results: [6, 7] function: "microbatch"
          attributes { name: "epsilon" number: 1e-05 } }
    ops { op: "train.exp" name: "exp" operands: 4 results: 8 function: "microbatch" }
  })";

constexpr const char *normOfSum = R"(
  reference: [3, 0, 1, 2]
  kernel { kernel: "rms_norm"
    operands { access: READ dtype: DTYPE_BF16 shape: [6, 4] } operands { access: READ dtype: DTYPE_F32 shape: [4] }
    operands { access: READ dtype: DTYPE_F32 shape: [6, 4] } operands { access: WRITE dtype: DTYPE_BF16 shape: [6, 4] }
    operands { access: WRITE dtype: DTYPE_F32 shape: [6] } operands { access: WRITE dtype: DTYPE_F32 shape: [6, 4] }
    operands { access: WRITE dtype: DTYPE_BF16 shape: [6, 4] }
    attributes { name: "epsilon" number: 1e-05 } attributes { name: "residual" integer: 1 }
    attributes { name: "rounded" integer: 1 } })";

TEST(Meaning, FollowsASumThroughItsNorm) {
  Case one(normOfSum, withNorm);
  const auto results =
      one.meaning.resultsOf(one.command, std::vector<uint32_t>{one.value(0), one.value(2), one.value(1), 0, 0, 0, 0});
  EXPECT_EQ(results[3].value, one.value(6));
  EXPECT_EQ(results[4].value, one.value(7));
  EXPECT_EQ(results[5].value, one.value(4));
  EXPECT_EQ(results[6].value, one.value(5));
}

TEST(Meaning, RefusesANormOfAnotherSum) {
  const auto planted = [](auto change) {
    Case one(normOfSum, withNorm);
    change(one.command);
    return one.refusal({one.value(0), one.value(2), one.value(1), 0, 0, 0, 0});
  };
  Case one(normOfSum, withNorm);
  EXPECT_EQ(one.refusal({one.value(0), one.value(2), one.value(4), 0, 0, 0, 0}),
            "operand 0 holds what no op computes, but train.rms_norm norm takes train.cast round");
  EXPECT_EQ(one.refusal({one.value(5), one.value(2), one.value(1), 0, 0, 0, 0}),
            "operand 0 holds what no op computes, but train.rms_norm norm takes train.cast round");
  EXPECT_EQ(planted([](proto::Command &command) { command.mutable_kernel()->mutable_attributes(1)->set_integer(0); }),
            "kernel 'rms_norm': takes 5 operands, not 7");
  EXPECT_EQ(planted([](proto::Command &command) { command.mutable_kernel()->mutable_attributes(0)->set_number(1); }),
            "its attribute epsilon is not that of train.rms_norm norm");
  EXPECT_EQ(planted([](proto::Command &command) { command.set_reference(2, 4); }),
            "it does not compute train.exp exp, as it is said to, of what its operands hold");
  EXPECT_EQ(planted([](proto::Command &command) { command.mutable_kernel()->mutable_operands()->RemoveLast(); }),
            "kernel 'rms_norm': takes 7 operands, not 6");
  EXPECT_EQ(planted([](proto::Command &command) { command.mutable_kernel()->mutable_operands(2)->set_shape(0, 3); }),
            "operands 0 and 2 of kernel rms_norm have different shapes");
  const auto withOperand = [&](int index, auto change) {
    Case changed(normOfSum, withNorm);
    change(*changed.command.mutable_kernel()->mutable_operands(index));
    return changed.callRefusal();
  };
  const std::string place = "role , routine , command 0: ";
  EXPECT_EQ(withOperand(5, [](proto::Operand &operand) {}), "");
  EXPECT_EQ(withOperand(5, [](proto::Operand &operand) { operand.set_access(proto::Operand::READ); }),
            place + "operand 5 of kernel rms_norm is said to be READ, but the kernel's row says WRITE");
  EXPECT_EQ(withOperand(6, [](proto::Operand &operand) { operand.set_dtype(proto::DTYPE_F16); }),
            place + "kernel 'rms_norm': operand 6 (rounded) must be bfloat16, not float16");
  Case negative(normOfSum, withNorm); // as its kernel says when ds-run makes it
  negative.command.mutable_kernel()->mutable_attributes(0)->set_number(-1);
  EXPECT_EQ(negative.callRefusal(), place + "kernel 'rms_norm': attribute 'epsilon' must not be negative");
}

/// A constant of four int64, as text of a plan.
std::string constantOf(const std::string &name, const std::array<int64_t, 4> &numbers) {
  proto::Variable variable;
  variable.set_name(name);
  variable.set_dtype(proto::DTYPE_I64);
  variable.add_shape(4);
  variable.set_kind(proto::Variable::CONSTANT);
  variable.mutable_source()->set_literal(std::string(reinterpret_cast<const char *>(numbers.data()), sizeof numbers));
  return "variables {" + variable.DebugString() + "}";
}

TEST(Meaning, TellsConstantsApartThatADoubleDoesNot) {
  constexpr int64_t large = (int64_t(1) << 53) + 1;
  const std::string text = constantOf("a", {large, large, large, large}) +
                           constantOf("b", {large - 1, large - 1, large - 1, large - 1}) +
                           constantOf("same", {large, large, large, large});
  const proto::Plan plan = Case::parse(text.c_str());
  Values values(plan);
  EXPECT_NE(values.variable(0), values.variable(1));
  EXPECT_EQ(values.variable(0), values.variable(2));
}

TEST(Meaning, RefusesConstantsOfOneChecksum) {
  const std::string text = constantOf("a", {1, 2, 3, 4}) + constantOf("b", {5, 2, 3, 3806848990});
  const proto::Plan plan = Case::parse(text.c_str());
  Values values(plan);
  values.variable(0);
  try {
    values.variable(1);
    ADD_FAILURE() << "not refused";
  } catch (const Mismatch &mismatch) {
    EXPECT_TRUE(mismatch.sentence.starts_with("constants a and b have other elements, but the same checksum "))
        << mismatch.sentence;
  }
}

TEST(Meaning, RefusesAKernelThatNamesNoOpOrSeveral) {
  Case none(matmul), several(matmul);
  none.command.clear_reference();
  EXPECT_EQ(none.refusal({none.value(0), none.value(1), 0}),
            "kernel matmul names no reference op, so nothing says what it should compute");
  several.command.add_reference(1);
  EXPECT_EQ(several.refusal({several.value(0), several.value(1), 0}),
            "kernel matmul names 2 reference ops; it can be one");
}

TEST(Meaning, RefusesAnotherTypeOrShape) {
  Case half(matmul), doubles(matmul), more(matmul);
  half.command.mutable_kernel()->mutable_operands(0)->set_shape(0, 2);
  EXPECT_EQ(half.refusal({half.value(0), half.value(1), 0}),
            "operand 0 is float32 [2, 4], but train.matmul dense has float32 [4, 4] there");
  doubles.command.mutable_kernel()->mutable_operands(2)->set_dtype(proto::DTYPE_I32);
  EXPECT_EQ(doubles.refusal({doubles.value(0), doubles.value(1), 0}),
            "operand 2 is int32 [4, 4], but train.matmul dense has float32 [4, 4] there");
  *more.command.mutable_kernel()->add_operands() = more.command.kernel().operands(0);
  EXPECT_EQ(more.refusal({more.value(0), more.value(1), 0}), "it has more operands than train.matmul dense");
}

TEST(Meaning, AttributesAreClosed) {
  Case sums(matmul), missing(matmul), pieces(matmul);
  proto::Attribute &added = *sums.command.mutable_kernel()->add_attributes();
  added.set_name("dropout");
  added.set_integer(1);
  EXPECT_EQ(sums.refusal({sums.value(0), sums.value(1), 0}), "its attribute dropout is not that of train.matmul dense");
  missing.command.mutable_kernel()->mutable_attributes()->DeleteSubrange(1, 1);
  EXPECT_EQ(missing.refusal({missing.value(0), missing.value(1), 0}),
            "it lacks attribute trans_b of train.matmul dense");
  proto::Attribute &other = *pieces.command.mutable_kernel()->add_attributes();
  other.set_name("pieces");
  other.set_integer(3); // the machine has none
  EXPECT_EQ(pieces.refusal({pieces.value(0), pieces.value(1), 0}),
            "its attribute pieces is not that of train.matmul dense");
}

// A vector of 4 on [4, 4]: what each row adds and what each column adds are two values.
TEST(Meaning, TellsRowsFromColumns) {
  Case one(matmul);
  Values &values = one.meaning.values();
  const uint32_t vector = values.apply(60, proto::DTYPE_F32, std::vector<uint32_t>{one.value(0)}, 4);
  const std::vector<int64_t> row = {4}, column = {4, 1}, whole = {4, 4};
  EXPECT_NE(values.broadcast(vector, row, whole), values.broadcast(vector, column, whole));
  EXPECT_EQ(values.broadcast(vector, row, whole), values.broadcast(vector, std::vector<int64_t>{1, 4}, whole));
  EXPECT_EQ(values.broadcast(vector, row, row), vector);
  const uint32_t third = values.constant(3, proto::DTYPE_F32);
  EXPECT_EQ(values.broadcast(third, std::vector<int64_t>{}, whole), third);
}

TEST(Meaning, ComposesRepetitions) {
  const std::vector<int64_t> row = {4}, pair = {2, 4}, whole = {3, 2, 4}, column = {2, 1}, wide = {2, 5};
  EXPECT_EQ(composed(*runsOf(row, pair), *runsOf(pair, whole)), runsOf(row, whole));
  EXPECT_EQ(*runsOf(row, whole), (Runs{{6, true}, {4, false}}));
  const std::vector<int64_t> scalar = {1};
  EXPECT_EQ(composed(*runsOf(scalar, column), *runsOf(column, wide)), (Runs{{10, true}}));
  EXPECT_FALSE(runsOf(row, wide));
  EXPECT_FALSE(composed({{0, false}}, {{0, false}}));
}

/// A running mean: 0.75 old + 0.25 new.
constexpr const char *statistics = R"(
  variables { name: "running_mean" dtype: DTYPE_F32 shape: [4] kind: BUFFER }
  variables { name: "running_var" dtype: DTYPE_F32 shape: [4] kind: BUFFER }
  reference {
    values { name: "mean" dtype: DTYPE_F32 shape: [4] }
    values { name: "variance" dtype: DTYPE_F32 shape: [4] }
    ops { op: "train.update_average" operands: 0 variables: 0 function: "microbatch"
          attributes { name: "momentum" number: 0.75 } attributes { name: "correction" number: 1 } }
  })";
constexpr const char *average = R"(
  reference: 0
  kernel { kernel: "elementwise"
    operands { buffer: 1 access: READ dtype: DTYPE_F32 shape: [4] } operands { buffer: 2 access: READ dtype: DTYPE_F32 shape: [4] }
    operands { buffer: 1 access: WRITE dtype: DTYPE_F32 shape: [4] }
    attributes { name: "program" integers { values: [0, 7, 0, -1, -1, 0, 7, 1, -1, -1, 12, 7, 0, 2, -1, 12, 7, 1, 3, -1, 10, 7, 4, 5, -1] } }
    attributes { name: "constants" numbers { values: [0.75, 0.25] } }
    attributes { name: "results" integers { values: [6] } } })";

TEST(Meaning, RunningStatisticsFollowTheirFormula) {
  const auto refusal = [](auto change) {
    Case one(average, statistics);
    std::vector<uint32_t> held = {one.meaning.values().variable(0), one.value(0), 0};
    change(one, held);
    return one.refusal(held);
  };
  const std::string wrong = "it does not compute train.update_average of running_mean and input mean";
  EXPECT_EQ(refusal([](Case &, auto &) {}), "");
  EXPECT_EQ(refusal([](Case &one, auto &held) { held[1] = one.value(1); }), wrong);
  EXPECT_EQ(refusal([](Case &one, auto &held) { held[0] = one.meaning.values().variable(1); }), wrong);
  EXPECT_EQ(refusal([](Case &one, auto &held) { held[0] = one.meaning.values().zero(); }), wrong);
  EXPECT_EQ(refusal([](Case &one, auto &) {
              one.command.mutable_kernel()->mutable_attributes(1)->mutable_numbers()->set_values(0, 0.5);
            }),
            wrong);
  EXPECT_EQ(refusal([](Case &one, auto &) { one.command.mutable_kernel()->mutable_operands(2)->set_buffer(3); }),
            "it does not write over running_mean, as train.update_average does");
}

} // namespace
} // namespace ds::check
