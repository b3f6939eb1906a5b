//===- PartsTest.cpp - kernels on the parts that ranks along an axis have ----===//
#include "test/unit/check/Parts.h"
#include "kernels/ElementwiseProgram.h"

#include <gtest/gtest.h>
#include <string>
#include <utility>
#include <vector>

namespace ds::check::parts {
namespace {

using kernels::ElementwiseOp;

/// Keys of what a packed product makes: queries, keys and values of 16, 8 and 8.
struct Packed : Parts {
  explicit Packed(int64_t first, int64_t size = 4) {
    value("qkv", {2, 3, 32});
    op("k", "slice", {"qkv"}, {2, 3, 8});
    integers("starts", {0, 0, 16});
    integers("steps", {1, 1, 1});
    integers("sizes", {2, 3, 8});
    command = &kernel("slice", {{2, 3, 16}, {2, 3, size}}, "k");
    integers(*command, "starts", {0, 0, first});
    integers(*command, "steps", {1, 1, 1});
  }
  using Parts::integers;
  proto::Command *command;
};

TEST(Parts, TakesARunOfThoseOfAPackedValue) {
  Packed packed(8);
  EXPECT_EQ(packed.result(*packed.command, {packed.part("qkv", 2, {16, 8, 8})}), packed.part("k", 2));
}

TEST(Parts, RefusesARunOfAPackedValueThatIsCutThrough) {
  Packed packed(8);
  EXPECT_EQ(packed.refusal(*packed.command, {packed.part("qkv", 2)}),
            "elements 8 to 11 of dimension 2 of what each rank along axis tensor has are no part of any slice of the "
            "whole");
}

TEST(Parts, RefusesPartsOfRuns) {
  Packed later(9);
  EXPECT_NE(later.refusal(*later.command, {later.part("qkv", 2, {16, 8, 8})}).find("no part of any slice"),
            std::string::npos);
  Packed fewer(8, 2);
  EXPECT_NE(fewer.refusal(*fewer.command, {fewer.part("qkv", 2, {16, 8, 8})}).find("no part of any slice"),
            std::string::npos);
}

TEST(Parts, RefusesAnotherRun) {
  Packed values(12);
  EXPECT_EQ(values.refusal(*values.command, {values.part("qkv", 2, {16, 8, 8})}),
            "its attribute starts is not that of train.slice k");
}

TEST(Parts, RefusesTwoRunsForOne) {
  Packed both(8, 8);
  EXPECT_NE(both.refusal(*both.command, {both.part("qkv", 2, {16, 8, 8})}).find("operand 1 is"), std::string::npos);
}

TEST(Parts, RefusesEachOtherElementOfARun) {
  Packed packed(8);
  packed.command->mutable_kernel()->mutable_attributes(1)->mutable_integers()->set_values(2, 2);
  EXPECT_NE(packed.refusal(*packed.command, {packed.part("qkv", 2, {16, 8, 8})}).find("no part of any slice"),
            std::string::npos);
}

/// Gradients of queries, keys and values side by side.
struct Joined : Parts {
  Joined() {
    value("q", {2, 16});
    value("k", {2, 8});
    op("qkv", "concat", {"q", "k", "k"}, {2, 32});
    reference.attribute("axis").set_integer(1);
    command = &kernel("concat", {{2, 8}, {2, 4}, {2, 4}, {2, 16}}, "qkv");
    attribute(*command, "axis").set_integer(1);
  }
  proto::Command *command;
};

TEST(Parts, JoinsParts) {
  Joined joined;
  EXPECT_EQ(joined.result(*joined.command, {joined.part("q", 1), joined.part("k", 1), joined.part("k", 1)}),
            joined.part("qkv", 1, {16, 8, 8}));
}

TEST(Parts, RefusesToJoinPartsAndWholes) {
  Joined joined;
  EXPECT_EQ(joined.refusal(*joined.command, {joined.part("q", 1), joined.part("k", 1), joined.whole("k")}),
            "not all inputs of kernel concat are cut for the ranks along axis tensor along dimension 1");
}

TEST(Parts, JoinsPartsOfRows) {
  Parts parts;
  parts.value("q", {4, 6});
  parts.op("qq", "concat", {"q", "q"}, {4, 12});
  parts.reference.attribute("axis").set_integer(1);
  proto::Command &command = parts.kernel("concat", {{2, 6}, {2, 6}, {2, 12}}, "qq");
  attribute(command, "axis").set_integer(1);
  EXPECT_EQ(parts.result(command, {parts.part("q", 0), parts.part("q", 0)}), parts.part("qq", 0));
}

/// A table of 8 rows, of which each rank has 4, and its gradient.
struct Table : Parts {
  explicit Table(bool isGradient, const Shape &first, const Shape &steps) {
    value("table", {8, 3});
    value("rows", {5}, proto::DTYPE_I32);
    value("dy", {5, 3});
    op("y", "gather", {"table", "rows"}, {5, 3});
    reference.attribute("axis").set_integer(0);
    op("dtable", "gather_grad", {"dy", "rows"}, {8, 3});
    reference.attribute("axis").set_integer(0);
    command = isGradient ? &kernel("gather_grad", {{5, 3}, {5}, {4, 3}}, "dtable")
                         : &kernel("gather", {{4, 3}, {5}, {5, 3}}, "y");
    command->mutable_kernel()->mutable_operands(1)->set_dtype(proto::DTYPE_I32);
    attribute(*command, "axis").set_integer(0);
    integers(*command, "whole", {8});
    proto::Integers &begins = integers(*command, "first", first);
    if (!steps.empty())
      step(begins, steps);
  }
  using Parts::integers;
  proto::Command *command;
};

TEST(Parts, LooksUpRowsOfEachRank) {
  Table table(false, {0}, {4});
  EXPECT_EQ(table.result(*table.command, {table.part("table", 0), table.whole("rows")}), table.terms("y"));
}

TEST(Parts, RefusesRowsOfTheWholeTable) {
  Table table(false, {0}, {4});
  EXPECT_NE(table.refusal(*table.command, {table.whole("table"), table.whole("rows")}).find("operand 0 holds"),
            std::string::npos);
}

TEST(Parts, MakesEachRanksPartOfATable) {
  Table table(true, {0}, {4});
  EXPECT_EQ(table.result(*table.command, {table.whole("dy"), table.whole("rows")}), table.part("dtable", 0));
}

TEST(Parts, RefusesATableOfWhichEachRankMakesTheSame) {
  Table table(true, {0}, {});
  EXPECT_EQ(table.refusal(*table.command, {table.whole("dy"), table.whole("rows")}),
            "its attribute whole is not that of train.gather_grad dtable");
}

TEST(Parts, RefusesATableMadeElsewhere) {
  for (const auto &[first, steps] : {std::pair<int64_t, int64_t>{1, 4}, {0, 3}, {4, 4}}) {
    Table table(true, {first}, {steps});
    EXPECT_NE(
        table.refusal(*table.command, {table.whole("dy"), table.whole("rows")}).find("goes by where elements lie"),
        std::string::npos);
  }
}

/// Heads of what has them side by side: [2, 3, 8 * 2] is [2, 3, 8, 2], and then [2, 8, 3, 2].
TEST(Parts, FollowsHeadsThroughReshapesAndTransposes) {
  Parts parts;
  parts.value("flat", {2, 3, 16});
  parts.op("heads", "reshape", {"flat"}, {2, 3, 8, 2});
  parts.op("outer", "transpose", {"heads"}, {2, 8, 3, 2});
  parts.integers("perm", {0, 2, 1, 3});
  proto::Command &command = parts.kernel("transpose", {{2, 3, 4, 2}, {2, 4, 3, 2}}, "outer");
  Parts::integers(command, "perm", {0, 2, 1, 3});
  EXPECT_EQ(parts.result(command, {parts.part("flat", 2)}), parts.part("outer", 1));
}

/// 8 heads of queries share 4 of keys and values.
TEST(Parts, AttendsWithFewerHeads) {
  Parts parts(4);
  parts.value("q", {2, 8, 3, 2});
  parts.value("k", {2, 4, 3, 2});
  parts.value("v", {2, 4, 3, 2});
  parts.op("out", "attention", {"q", "k", "v"}, {2, 8, 3, 2});
  proto::ReferenceOp &op = *parts.reference.ops().Mutable(parts.reference.ops().size() - 1);
  op.add_results(parts.reference.value("lse", proto::DTYPE_F32, {2, 8, 3}));
  Parts::addFlags(parts.reference);
  proto::Command &command =
      parts.kernel("attention", {{2, 2, 3, 2}, {2, 1, 3, 2}, {2, 1, 3, 2}, {2, 2, 3, 2}, {2, 2, 3}}, "out");
  Parts::addFlags(command);
  const std::vector<uint32_t> held = {parts.part("q", 1), parts.part("k", 1), parts.part("v", 1), 0, 0};
  const std::vector<Meaning::Result> results = parts.meaning().resultsOf(command, held);
  EXPECT_EQ(results[3].value, parts.part("out", 1));
  EXPECT_EQ(parts.meaning().values().name(results[4].value),
            "parts of result 1 of train.attention out along axis tensor");
  EXPECT_EQ(parts.refusal(command, {held[0], held[1], parts.whole("v"), 0}),
            "operand 2 is float32 [2, 1, 3, 2], but train.attention out has float32 [2, 4, 3, 2] there");
}

/// 8 heads of queries share 2 of keys and values on 4 ranks: along one axis groups are cut, along another what is in
/// one.
TEST(Parts, AttendsWithHeadsOfAGroup) {
  Parts parts;
  proto::Axis &heads = *parts.b.plan.mutable_world()->add_axes();
  heads.set_name("heads");
  heads.set_size(2);
  parts.value("q", {2, 8, 3, 2});
  parts.value("k", {2, 2, 3, 2});
  parts.op("out", "attention", {"q", "k", "k"}, {2, 8, 3, 2});
  proto::ReferenceOp &op = *parts.reference.ops().Mutable(parts.reference.ops().size() - 1);
  op.add_results(parts.reference.value("lse", proto::DTYPE_F32, {2, 8, 3}));
  Parts::addFlags(parts.reference);
  proto::Command &command =
      parts.kernel("attention", {{2, 2, 3, 2}, {2, 1, 3, 2}, {2, 1, 3, 2}, {2, 2, 3, 2}, {2, 2, 3}}, "out");
  Parts::addFlags(command);
  Values &values = parts.meaning().values();
  Spread inGroup = Parts::cut({2, 4, 3, 2}, 1, {}, 2);
  inGroup.axis = 1;
  const uint32_t q = values.placed(parts.part("q", 1), inGroup), k = parts.part("k", 1);
  EXPECT_EQ(parts.meaning().resultsOf(command, std::vector<uint32_t>{q, k, k, 0, 0})[3].value,
            values.placed(parts.part("out", 1), inGroup));
}

TEST(Parts, TakesSoftmaxOfRows) {
  Parts parts;
  parts.value("scores", {2, 4, 3, 3});
  parts.op("shares", "softmax", {"scores"}, {2, 4, 3, 3});
  proto::Command &command = parts.kernel("softmax", {{2, 2, 3, 3}, {2, 2, 3, 3}}, "shares");
  attribute(command, "axis").set_integer(3);
  parts.reference.attribute("axis").set_integer(3);
  EXPECT_EQ(parts.result(command, {parts.part("scores", 1)}), parts.part("shares", 1));
}

/// Of one head a rank, a row of 4 is as well the rank's quarter of a row of 8; a norm needs rows whole.
TEST(Parts, NormsRowsOfOneHead) {
  Parts parts;
  parts.value("keys", {3, 2, 4});
  parts.value("gain", {4});
  parts.op("normed", "rms_norm", {"keys", "gain"}, {3, 2, 4});
  proto::ReferenceOp &op = *parts.reference.ops().Mutable(parts.reference.ops().size() - 1);
  op.add_results(parts.reference.value("rrms", proto::DTYPE_F32, {3, 2}));
  parts.reference.attribute("epsilon").set_number(1);
  proto::Command &command = parts.kernel("rms_norm", {{3, 4}, {4}, {3, 4}, {3}}, "normed");
  command.mutable_kernel()->mutable_operands(2)->set_access(proto::Operand::WRITE);
  attribute(command, "epsilon").set_number(1);
  const std::vector<uint32_t> held = {parts.part("keys", 1), parts.whole("gain"), 0, 0};
  EXPECT_EQ(parts.meaning().resultsOf(command, held)[2].value, parts.part("normed", 1));
}

/// Parts of an inner dimension lie one behind another when ranks have brought them together.
TEST(Parts, PutsPartsSideBySide) {
  Parts parts;
  parts.value("x", {3, 8});
  Values &values = parts.meaning().values();
  const uint32_t together = values.sideBySide(parts.part("x", 1), 0, 2).value();
  EXPECT_NE(together, parts.whole("x"));
  proto::Command &command = parts.kernel("transpose", {{2, 3, 4}, {3, 2, 4}});
  Parts::integers(command, "perm", {1, 0, 2});
  EXPECT_EQ(parts.result(command, {together}), parts.whole("x"));
  proto::Command &other = parts.kernel("transpose", {{3, 2, 4}, {2, 3, 4}});
  Parts::integers(other, "perm", {1, 0, 2});
  EXPECT_NE(parts.result(other, {together}), parts.whole("x"));
}

/// Before ranks add them up and each keeps one, terms of parts are laid out one behind another.
TEST(Parts, LaysOutTerms) {
  Parts parts;
  parts.value("x", {3, 8});
  proto::Command &command = parts.kernel("transpose", {{3, 2, 4}, {2, 3, 4}});
  Parts::integers(command, "perm", {1, 0, 2});
  Values &values = parts.meaning().values();
  plan::AxisSet tensor;
  tensor.add(0);
  const uint32_t sum = values.addedUp(parts.result(command, {parts.terms("x")}), tensor).value();
  EXPECT_EQ(values.placed(sum, {0, {}, Cut::inParts(1, 2, 12)}), parts.part("x", 1));
}

/// Terms are added, subtracted and transposed as their sums are.
TEST(Parts, AddsTerms) {
  Parts parts;
  for (const char *name : {"x", "y", "z"})
    parts.value(name, {3, 8});
  parts.op("sum", "add", {"x", "y"}, {3, 8});
  parts.op("rest", "sub", {"sum", "z"}, {3, 8});
  parts.op("turned", "transpose", {"x"}, {8, 3});
  parts.integers("perm", {1, 0});
  proto::Command &command = parts.kernel("elementwise", {{3, 8}, {3, 8}, {3, 8}, {3, 8}}, "rest");
  setInstruction(command, int64_t(ElementwiseOp::Add), {0, 1});
  for (const int64_t number :
       {int64_t(ElementwiseOp::Sub), int64_t(proto::DTYPE_F32), int64_t(3), int64_t(2), int64_t(-1)})
    command.mutable_kernel()->mutable_attributes(0)->mutable_integers()->add_values(number);
  command.mutable_kernel()->mutable_attributes(2)->mutable_integers()->set_values(0, 4);
  EXPECT_EQ(parts.result(command, {parts.terms("x"), parts.terms("y"), parts.terms("z")}), parts.terms("rest"));
  EXPECT_NE(parts.refusal(command, {parts.terms("x"), parts.terms("y"), parts.whole("z")}).find("takes no terms"),
            std::string::npos);
  proto::Command &turn = parts.kernel("transpose", {{3, 8}, {8, 3}}, "turned");
  Parts::integers(turn, "perm", {1, 0});
  EXPECT_EQ(parts.result(turn, {parts.terms("x")}), parts.terms("turned"));
}

/// Of what all ranks have, each takes its columns.
struct Taken : Parts {
  Taken(const Shape &starts, const Shape &steps, const Shape &strides = {1, 1}) {
    value("x", {3, 8});
    command = &kernel("slice", {{3, 8}, {3, 4}});
    step(integers(*command, "starts", starts), steps);
    integers(*command, "steps", strides);
  }
  using Parts::integers;
  proto::Command *command;
};

TEST(Parts, TakesColumnsOfEachRank) {
  Taken taken({0, 0}, {0, 4});
  EXPECT_EQ(taken.result(*taken.command, {taken.whole("x")}), taken.part("x", 1));
}

TEST(Parts, RefusesOtherColumns) {
  for (const auto &[start, step] : {std::pair<int64_t, int64_t>{0, 2}, {0, 3}, {0, 0}, {4, 4}, {2, 2}}) {
    Taken taken({0, start}, {0, step});
    EXPECT_EQ(taken.refusal(*taken.command, {taken.whole("x")}),
              "kernel slice names no reference op, so nothing says what it should compute");
  }
}

} // namespace
} // namespace ds::check::parts
