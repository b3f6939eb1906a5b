//===- MeaningTest.cpp - commands against what their reference ops say ----===//
#include "compiler/check/Meaning.h"

#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

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
          attributes { name: "transpose_rhs" integer: 1 } }
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
    operands { access: READ } operands { access: READ } operands { access: WRITE }
    attributes { name: "trans_a" integer: 0 } attributes { name: "trans_b" integer: 1 } attributes { name: "bias" integer: 0 } })";

constexpr const char *doubling = R"(
  reference: 2
  kernel { kernel: "elementwise"
    operands { buffer: 1 access: READ } operands { buffer: 2 access: WRITE }
    attributes { name: "program" integers { values: [10, 7, 0, 0, -1] } }
    attributes { name: "constants" numbers {} }
    attributes { name: "results" integers { values: [1] } } })";

constexpr const char *accumulation = R"(
  reference: 5
  kernel { kernel: "elementwise"
    operands { buffer: 5 access: READ } operands { buffer: 6 access: READ } operands { buffer: 5 access: WRITE }
    attributes { name: "program" integers { values: [10, 7, 0, 1, -1] } }
    attributes { name: "constants" numbers {} }
    attributes { name: "results" integers { values: [2] } } })";

constexpr const char *update = R"(
  kernel { kernel: "sgd"
    operands { access: READ_WRITE } operands { access: READ }
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
  explicit Case(const char *text) : plan(parse(program)), meaning(plan) {
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &command));
  }
  uint32_t value(uint32_t reference) { return meaning.values().of(reference); }

  /// The sentence of the refusal, or "".
  std::string refusal(std::vector<uint32_t> held) {
    try {
      meaning.resultsOf(command, held);
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
  Case one(matmul);
  one.command.mutable_kernel()->mutable_operands(2)->set_access(proto::Operand::READ);
  EXPECT_NE(one.refusal({0, 0, 0}).find("operand 2 is a result"), std::string::npos);
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
  one.command.mutable_kernel()->mutable_attributes(0)->mutable_integers()->set_values(0, 12);
  EXPECT_NE(one.refusal({0, 0, 0}).find("does not add"), std::string::npos);
}

TEST(Meaning, VerifiesUpdates) {
  Case one(update);
  const uint32_t half = one.meaning.values().constant(0.5);
  EXPECT_EQ(one.meaning.requireUpdate(one.command, 0, std::vector<uint32_t>{0, 0, half, half, half}).added,
            one.value(3));
  const auto refusal = [&](uint32_t parameter, std::vector<uint32_t> held) -> std::string {
    try {
      one.meaning.requireUpdate(one.command, parameter, held);
    } catch (const Mismatch &mismatch) {
      return mismatch.sentence;
    }
    return "";
  };
  EXPECT_NE(refusal(0, {0, 0, one.meaning.values().constant(0.25), half, half}).find("holds the constant 0.25"),
            std::string::npos);
  EXPECT_EQ(refusal(1, {0, 0, half, half, half}), "it updates w::gradient, which is no parameter");
  one.command.mutable_kernel()->mutable_attributes(0)->set_number(0.2);
  EXPECT_NE(refusal(0, {0, 0, half, half, half}).find("attribute weight_decay"), std::string::npos);
}

} // namespace
} // namespace ds::check
