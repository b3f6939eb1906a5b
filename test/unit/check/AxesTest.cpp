//===- AxesTest.cpp - a plan on a mesh of data x tensor, and ways to break it --===//
#include "test/unit/check/MeshPlan.h"

#include <gtest/gtest.h>
#include <ostream>
#include <set>
#include <string>
#include <vector>

namespace ds::check::meshes {
namespace {

/// A way to break the plan, and what the verdict begins with or has in it.
struct Defect {
  const char *name;
  void (*make)(MeshPlan &);
  const char *rule;
  const char *sentence = "";
};

std::ostream &operator<<(std::ostream &out, const Defect &defect) { return out << defect.name; }

void over(MeshPlan &plan, const char *name, uint32_t communicator) {
  plan.commandNamed(name).mutable_collective()->set_communicator(communicator);
}

proto::Integers &firstOf(MeshPlan &plan, const char *name) {
  for (proto::Attribute &attribute : *plan.commandNamed(name).mutable_kernel()->mutable_attributes())
    if (attribute.name() == "first")
      return *attribute.mutable_integers();
  throw std::runtime_error("no first");
}

void cut(MeshPlan &plan, const char *name, uint32_t dimension, int64_t size) {
  plan.variableNamed(name).clear_placement();
  MeshPlan::shard(plan.variableNamed(name), dimension, size);
}

/// What `name` reads is another buffer of the same shape.
void read(MeshPlan &plan, const char *name, int operand, const Tensor &other) {
  plan.commandNamed(name).mutable_kernel()->mutable_operands(operand)->set_buffer(other.buffer);
}

/// A collective becomes a copy of as much as its target takes.
void copyInstead(MeshPlan &plan, const char *name) {
  proto::Command &command = plan.commandNamed(name);
  const proto::CollectivePart part = command.collective().parts(0);
  command.mutable_copy()->mutable_source()->CopyFrom(part.source());
  *command.mutable_copy()->mutable_source()->mutable_shape() = part.target().shape();
  command.mutable_copy()->mutable_target()->CopyFrom(part.target());
}

/// The source of a collective lies among sums of gradients, and before it the last of its rows are summed over data.
void sumRowsBefore(MeshPlan &plan, const char *name, int64_t count) {
  plan.repeat(name); // the copy is the collective now
  const proto::Operand source = plan.partOf(name).source();
  plan.builder.role().mutable_buffers(int(source.buffer()))->set_category(proto::Buffer::GRADIENTS);
  const proto::CollectivePart row = plan.partOf("accumulate g"); // as long as a row
  proto::CollectiveCommand &sum = *plan.commandNamed(name).mutable_collective();
  sum.Clear();
  sum.set_kind(Collective::ALL_REDUCE);
  sum.set_communicator(overData);
  for (int64_t r = source.shape(0) - count; r < source.shape(0); ++r) {
    proto::CollectivePart &part = *sum.add_parts() = row;
    part.set_accumulate(false);
    for (proto::Operand *operand : {part.mutable_source(), part.mutable_target()}) {
      operand->set_buffer(source.buffer());
      operand->set_byte_offset(uint64_t(r * width) * sizeof(float));
    }
    part.mutable_target()->set_access(proto::Operand::WRITE);
  }
}

const Defect defects[] = {
    // The wrong axis of a collective.
    {"the sum of y over data", [](MeshPlan &p) { over(p, "sum y", overData); }, "meaning",
     "it does not compute train.mul u"},
    {"the sum of y over all ranks", [](MeshPlan &p) { over(p, "sum y", overAll); }, "reader",
     "REDUCE_SCATTER over 4 ranks makes of 128 bytes no 64"},
    {"the gather of u over data", [](MeshPlan &p) { over(p, "gather u", overData); }, "meaning",
     "operand 0 holds parts of other values, but train.reduce_sum sum takes train.mul u"},
    {"the sum of dg over data", [](MeshPlan &p) { over(p, "sum dg", overData); }, "coverage",
     "the gradient of g in buffer 5 (g::gradient) lacks micro-batch 0"},
    {"the sum of dg over all ranks", [](MeshPlan &p) { over(p, "sum dg", overAll); }, "coverage",
     "the gradient of g in buffer 5 (g::gradient) lacks micro-batch 0"},
    {"the loss over tensor", [](MeshPlan &p) { over(p, "loss", overTensor); }, "meaning",
     "not over those that have micro-batches"},
    {"the loss over all ranks", [](MeshPlan &p) { over(p, "loss", overAll); }, "meaning",
     "not over those that have micro-batches"},
    {"the gradient of w over tensor", [](MeshPlan &p) { over(p, "accumulate w", overTensor); }, "meaning",
     "not over those that have micro-batches"},
    {"the gradient of v over all ranks", [](MeshPlan &p) { over(p, "accumulate v", overAll); }, "meaning",
     "not over those that have micro-batches"},
    // A sum of terms read as the whole.
    {"y is not summed", [](MeshPlan &p) { copyInstead(p, "sum y"); }, "meaning", "it does not compute train.mul u"},
    {"terms of y times g", [](MeshPlan &p) { read(p, "dy", 0, p.term); }, "meaning",
     "takes no terms of a sum that no collective has added up"},
    {"dg is not summed over tensor", [](MeshPlan &p) { copyInstead(p, "sum dg"); }, "coverage",
     "the gradient of g in buffer 5 (g::gradient) lacks micro-batch 0"},
    {"terms of dg are accumulated",
     [](MeshPlan &p) { p.partOf("accumulate g").mutable_source()->set_buffer(p.dgTerm.buffer); }, "coverage"},
    {"the largest of a sum's terms",
     [](MeshPlan &p) { p.commandNamed("dg").mutable_kernel()->set_kernel("reduce_max"); }, "meaning"},
    // A part read as the whole, or as another part.
    {"u is not gathered",
     [](MeshPlan &p) {
       p.drop("gather u");
       read(p, "sum", 0, p.us);
       *p.commandNamed("sum").mutable_kernel()->mutable_operands(0)->mutable_shape() =
           p.commandNamed("u").kernel().operands(2).shape();
     },
     ""},
    {"u is the first rank's",
     [](MeshPlan &p) {
       proto::CollectiveCommand &gather = *p.commandNamed("gather u").mutable_collective();
       gather.set_kind(Collective::BROADCAST);
       *gather.mutable_parts(0)->mutable_target()->mutable_shape() = gather.parts(0).source().shape();
     },
     "value"},
    {"columns of w for rows of v", [](MeshPlan &p) { read(p, "dm", 1, p.w); }, "meaning",
     "holds w, but train.matmul dm takes v"},
    {"w is said to be cut by rows", [](MeshPlan &p) { cut(p, "w", 0, width / parts); }, "meaning",
     "variable w::gradient: its placement is not that of w"},
    {"v is said to be cut by columns", [](MeshPlan &p) { cut(p, "v", 1, width / parts); }, "meaning",
     "variable v::gradient: its placement is not that of v"},
    {"w is said to be whole", [](MeshPlan &p) { p.variableNamed("w").clear_placement(); }, "reader",
     "of variable w a rank holds 512"},
    {"w's gradient is cut by rows", [](MeshPlan &p) { cut(p, "w::gradient", 0, width / parts); }, "meaning",
     "variable w::gradient: its placement is not that of w"},
    {"v's gradient is whole", [](MeshPlan &p) { p.variableNamed("v::gradient").clear_placement(); }, "meaning",
     "variable v::gradient: its placement is not that of v"},
    {"w's gradient for v", [](MeshPlan &p) { read(p, "sgd v", 1, p.dw); }, "coverage",
     "is the sum of parts of train.matmul dw along axis tensor"},
    {"w and its gradient are cut along data",
     [](MeshPlan &p) {
       for (const char *name : {"w", "w::gradient"})
         p.variableNamed(name).mutable_placement()->mutable_axes(0)->set_axis(dataAxis);
     },
     "meaning", "along which they have samples of their own"},
    {"a gradient of no parameter is cut otherwise",
     [](MeshPlan &p) {
       p.variableNamed("w::gradient").clear_of();
       cut(p, "w::gradient", 0, width / parts);
     },
     "meaning", "variable w::gradient: its placement is not that of w"},
    {"ranks have terms of v",
     [](MeshPlan &p) {
       p.variableNamed("v").mutable_placement()->mutable_axes(0)->set_partial(proto::AxisPlacement::SUM);
     },
     "reader", "says that ranks have terms of it"},
    {"g varies along tensor",
     [](MeshPlan &p) {
       proto::AxisPlacement &along = *p.variableNamed("g").mutable_placement()->add_axes();
       along.set_axis(tensorAxis);
       along.set_varies(true);
     },
     "meaning", "ranks have other values of it"},
    {"samples differ along tensor",
     [](MeshPlan &p) { p.builder.plan.mutable_inputs(0)->mutable_placement()->mutable_axes(0)->set_axis(tensorAxis); },
     "meaning", "along which they have samples of their own"},
    {"steps of another attribute",
     [](MeshPlan &p) {
       for (proto::Attribute &attribute : *p.commandNamed("sum").mutable_kernel()->mutable_attributes())
         *attribute.mutable_integers()->add_rank_steps() = firstOf(p, "m").rank_steps(0);
     },
     "reader", "may only to where a part begins"},
    // A missing, doubled or wrongly ordered sum.
    {"the gradient of w is not summed over data",
     [](MeshPlan &p) {
       proto::Command &command = p.commandNamed("accumulate w");
       const proto::CollectivePart part = command.collective().parts(0);
       proto::Command &sum = command;
       sum.mutable_kernel()->set_kernel("elementwise");
       for (const auto access : {proto::Operand::READ, proto::Operand::READ, proto::Operand::WRITE}) {
         *sum.mutable_kernel()->add_operands() =
             sum.kernel().operands_size() == 1 ? operandOf(p.dwTerm, access) : operandOf(p.dw, access);
       }
       setInstruction(sum, int64_t(ElementwiseOp::Add), {0, 1});
     },
     "coverage", "of this rank alone"},
    {"the gradient of v is summed twice", [](MeshPlan &p) { p.repeat("accumulate v"); }, "coverage",
     "holds micro-batch 0 2 times"},
    {"dg is summed over tensor twice",
     [](MeshPlan &p) {
       p.repeat("sum dg");
       p.partOf("sum dg").mutable_target()->set_buffer(p.dgWhole.buffer);
       proto::Routine &routine = *p.builder.role().mutable_routines(int(MeshPlan::microbatch));
       for (int i = 1; i < routine.commands_size(); ++i)
         if (routine.commands(i).has_collective() && routine.commands(i - 1).has_collective() &&
             routine.commands(i).collective().parts(0).source().buffer() == p.dgTerm.buffer) {
           routine.mutable_commands(i)->mutable_collective()->mutable_parts(0)->mutable_source()->set_buffer(
               p.dgWhole.buffer);
         }
     },
     "coverage"},
    {"w's gradient is summed over tensor as well",
     [](MeshPlan &p) {
       p.repeat("accumulate w");
       over(p, "accumulate w", overTensor);
     },
     "meaning"},
    {"y's terms are summed after they are used", [](MeshPlan &p) { read(p, "u", 0, p.term); }, "meaning",
     "it does not compute train.mul u"},
    {"one row of u is summed over data before u is gathered", [](MeshPlan &p) { sumRowsBefore(p, "gather u", 1); },
     "meaning", "holds parts of other values, but train.reduce_sum sum takes train.mul u"},
    {"all rows of u are summed over data before u is gathered", [](MeshPlan &p) { sumRowsBefore(p, "gather u", 2); },
     "meaning", "holds parts of other values, but train.reduce_sum sum takes train.mul u"},
    {"one row of y's terms is summed over data before they are added up",
     [](MeshPlan &p) { sumRowsBefore(p, "sum y", 1); }, "meaning", "it does not compute train.mul u"},
    {"all rows of y's terms are summed over data before they are added up",
     [](MeshPlan &p) { sumRowsBefore(p, "sum y", 4); }, "meaning", "it does not compute train.mul u"},
    // Replicas that differ along the other axis.
    {"g is updated by other gradients along tensor", [](MeshPlan &p) { over(p, "accumulate g", overTensor); },
     "meaning"},
    {"g is said to be cut along tensor", [](MeshPlan &p) { cut(p, "g", 0, width / parts); }, "reader",
     "of variable g a rank holds 16"},
    // Masks.
    {"a mask drawn by local index", [](MeshPlan &p) { firstOf(p, "m").clear_rank_steps(); }, "meaning",
     "goes by where elements lie"},
    {"a mask drawn along data", [](MeshPlan &p) { firstOf(p, "m").mutable_rank_steps(0)->set_communicator(overData); },
     "meaning", "goes by where elements lie"},
    {"a mask drawn a row further", [](MeshPlan &p) { firstOf(p, "m").set_values(1, 4); }, "meaning",
     "goes by where elements lie"},
    {"a mask drawn by half a part", [](MeshPlan &p) { firstOf(p, "m").mutable_rank_steps(0)->set_values(1, 4); },
     "meaning"},
    {"a backward with another mask", [](MeshPlan &p) { firstOf(p, "da").clear_rank_steps(); }, "meaning",
     "goes by where elements lie"},
    {"a mask of another whole",
     [](MeshPlan &p) {
       for (proto::Attribute &attribute : *p.commandNamed("m").mutable_kernel()->mutable_attributes())
         if (attribute.name() == "whole")
           attribute.mutable_integers()->set_values(1, 2 * hidden);
     },
     "meaning"},
    {"steps of a communicator that is not there",
     [](MeshPlan &p) { firstOf(p, "m").mutable_rank_steps(0)->set_communicator(9); }, "reader",
     "it names communicator 9, but there are 3"},
    {"one step for two numbers",
     [](MeshPlan &p) { firstOf(p, "m").mutable_rank_steps(0)->mutable_values()->RemoveLast(); }, "reader",
     "ranks add 1 steps to 2 numbers"},
    {"a step that is too large", [](MeshPlan &p) { firstOf(p, "m").mutable_rank_steps(0)->set_values(1, INT64_MAX); },
     "reader", "must be 0 to"},
    // What is said of the sums.
    {"it says that it is bit-equal", [](MeshPlan &p) { p.builder.plan.set_numerics("bit-equal"); }, "numerics",
     "adds up terms"},
};

TEST(Axes, ProvesTheRightPlan) { EXPECT_EQ(MeshPlan().verdict(), "proven"); }

/// A buffer of sums may hold what is gathered, and terms that are added up.
TEST(Axes, ProvesItAmongSumsOfGradients) {
  MeshPlan plan;
  for (const char *name : {"gather u", "sum y"})
    sumRowsBefore(plan, name, 0);
  for (const char *name : {"gather u", "sum y"})
    plan.drop(name);
  EXPECT_EQ(plan.verdict(), "proven");
}

/// A sum over tensor that goes to where gradients are summed is of its micro-batch, as what kernels write there.
TEST(Axes, ProvesASumOfTermsAmongGradients) {
  MeshPlan plan;
  plan.builder.role().mutable_buffers(int(plan.dgWhole.buffer))->set_category(proto::Buffer::GRADIENTS);
  EXPECT_EQ(plan.verdict(), "proven");
}

/// The plan with ops of u and dy that nothing needs: both = u + dy, last = both * dy.
struct AddedPlan : MeshPlan {
  AddedPlan() {
    add("both", "train.add", "u", "dy");
    add("last", "train.mul", "both", "dy");
    for (const Tensor &sums : {u, dy})
      builder.role().mutable_buffers(int(sums.buffer))->set_category(proto::Buffer::COMMUNICATION);
    run("both", ElementwiseOp::Add, u);
    run("last", ElementwiseOp::Mul, floats("last", {rows, width}));
  }

private:
  proto::ReferenceOp &opNamed(const std::string &name) {
    for (proto::ReferenceOp &op : *builder.plan.mutable_reference()->mutable_ops())
      if (op.name() == name)
        return op;
    throw std::runtime_error("no op " + name);
  }
  void add(const std::string &name, const std::string &kind, const std::string &a, const std::string &b) {
    proto::ReferenceOp op = opNamed("u");
    op.set_op(kind);
    op.set_name(name);
    op.set_operands(0, opNamed(a).results(0));
    op.set_operands(1, opNamed(b).results(0));
    proto::Reference &reference = *builder.plan.mutable_reference();
    op.set_results(0, uint32_t(reference.values_size()));
    *reference.add_values() = proto::ReferenceValue(reference.values(int(opNamed("u").results(0))));
    *reference.add_ops() = op;
  }
  void run(const std::string &name, ElementwiseOp op, const Tensor &to) {
    proto::Command &command = builder.kernel(microbatch, compute, "elementwise", "rrw", {u, dy, to});
    setInstruction(command, int64_t(op), {0, 1});
    for (int i = 0; i < builder.plan.reference().ops_size(); ++i)
      if (builder.plan.reference().ops(i).name() == name)
        command.add_reference(uint32_t(i));
  }
};

/// What is added in place of a value that ranks have brought together is a value of the micro-batch, no sum of
/// gradients.
TEST(Axes, ProvesSumsOfValuesAmongGradients) { EXPECT_EQ(AddedPlan().verdict(), "proven"); }

class Defects : public testing::TestWithParam<Defect> {};

TEST_P(Defects, AreRefused) {
  MeshPlan plan;
  GetParam().make(plan);
  const std::string verdict = plan.verdict();
  EXPECT_TRUE(verdict.starts_with(GetParam().rule)) << verdict;
  EXPECT_NE(verdict.find(GetParam().sentence), std::string::npos) << verdict;
}

INSTANTIATE_TEST_SUITE_P(Axes, Defects, testing::ValuesIn(defects));

} // namespace
} // namespace ds::check::meshes
