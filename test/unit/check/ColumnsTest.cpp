//===- ColumnsTest.cpp - parts of an inner dimension, and of what all ranks have --===//
#include "test/unit/check/MeshPlan.h"

#include <gtest/gtest.h>
#include <string>
#include <vector>

namespace ds::check::meshes {
namespace {

/// The plan on a mesh in which each rank takes its part of what all have. h is gathered along its columns, and each
/// rank's columns of it are sliced out again; y is summed on all ranks, of which each reads its rows.
class ColumnsPlan : public MeshPlan {
public:
  ColumnsPlan() {
    const auto [routine, place] = makeRoom("h", 3);
    first = place;
    proto::CollectiveCommand &gather = *cleared(0).mutable_collective();
    gather.set_kind(Collective::ALL_GATHER);
    gather.set_communicator(overTensor);
    *gather.add_parts() = part(h, behind);
    move(1, "transpose", behind, beside);
    add(1, "perm", {1, 0, 2});
    move(2, "slice", whole, own);
    proto::RankSteps &steps = *add(2, "starts", {0, 0}).add_rank_steps();
    steps.set_communicator(overTensor);
    for (const int64_t step : {int64_t(0), columns})
      steps.add_values(step);
    add(2, "steps", {1, 1});
    for (const int operand : {0, 1})
      commandNamed("a").mutable_kernel()->mutable_operands(operand)->set_buffer(own.buffer);

    proto::CollectiveCommand &sum = *commandNamed("sum y").mutable_collective();
    sum.set_kind(Collective::ALL_REDUCE);
    sum.mutable_parts(0)->mutable_target()->set_buffer(y.buffer);
    *sum.mutable_parts(0)->mutable_target()->mutable_shape() = sum.parts(0).source().shape();
    for (const auto &[name, operand] : {std::pair{"u", 0}, {"dg terms", 1}}) {
      proto::Operand &read = *commandNamed(name).mutable_kernel()->mutable_operands(operand);
      read.set_buffer(y.buffer);
      read.set_rank_stride(uint64_t(rows / parts * width) * sizeof(float));
      read.set_communicator(overTensor);
    }
  }

  static constexpr int64_t columns = hidden / parts;
  /// The n-th of the commands between h and a.
  proto::Command &between(uint32_t n) {
    return *builder.role().mutable_routines(int(microbatch))->mutable_commands(int(first + n));
  }
  proto::Integers &integersOf(uint32_t n, const std::string &name) {
    for (proto::Attribute &attribute : *between(n).mutable_kernel()->mutable_attributes())
      if (attribute.name() == name)
        return *attribute.mutable_integers();
    throw std::runtime_error("no " + name);
  }
  proto::Operand &yOf(const char *name, int operand) {
    return *commandNamed(name).mutable_kernel()->mutable_operands(operand);
  }

  Tensor behind = floats("columns of h, one behind another", {parts, rows, columns});
  Tensor whole = floats("all of h", {rows, hidden});
  Tensor beside = {whole.buffer, whole.dtype, {rows, parts, columns}};
  Tensor own = floats("its own columns of h", {rows, columns});
  Tensor y = floats("y", {rows, width});
  uint32_t first = 0;

private:
  proto::Command &cleared(uint32_t n) {
    proto::Command &command = between(n);
    const uint32_t queue = command.queue();
    command.Clear();
    command.set_queue(queue);
    return command;
  }
  static proto::CollectivePart part(const Tensor &from, const Tensor &to) {
    proto::CollectivePart part;
    *part.mutable_source() = operandOf(from, proto::Operand::READ);
    *part.mutable_target() = operandOf(to, proto::Operand::WRITE);
    return part;
  }
  void move(uint32_t n, const char *kernel, const Tensor &from, const Tensor &to) {
    proto::KernelCommand &command = *cleared(n).mutable_kernel();
    command.set_kernel(kernel);
    *command.add_operands() = operandOf(from, proto::Operand::READ);
    *command.add_operands() = operandOf(to, proto::Operand::WRITE);
  }
  proto::Integers &add(uint32_t n, const char *name, const std::vector<int64_t> &values) {
    proto::Integers &integers = *attribute(between(n), name).mutable_integers();
    integers.mutable_values()->Assign(values.begin(), values.end());
    return integers;
  }
};

struct Defect {
  const char *name;
  void (*make)(ColumnsPlan &);
  const char *rule;
  const char *sentence;
};

const Defect defects[] = {
    {"parts that lie one behind another",
     [](ColumnsPlan &p) { p.between(2).mutable_kernel()->mutable_operands(0)->set_buffer(p.behind.buffer); }, "meaning",
     "it does not compute train.mul a"},
    {"gathered over data", [](ColumnsPlan &p) { p.between(0).mutable_collective()->set_communicator(overData); },
     "meaning", "it does not compute train.mul a"},
    {"put side by side by other sizes",
     [](ColumnsPlan &p) {
       for (const int operand : {0, 1}) {
         proto::Operand &moved = *p.between(1).mutable_kernel()->mutable_operands(operand);
         moved.set_shape(operand == 0 ? 0 : 1, parts * 2);
         moved.set_shape(2, ColumnsPlan::columns / 2);
       }
     },
     "meaning", "it does not compute train.mul a"},
    {"the first columns on each rank", [](ColumnsPlan &p) { p.integersOf(2, "starts").clear_rank_steps(); }, "meaning",
     "kernel slice names no reference op"},
    {"columns along data",
     [](ColumnsPlan &p) { p.integersOf(2, "starts").mutable_rank_steps(0)->set_communicator(overData); }, "meaning",
     "kernel slice names no reference op"},
    {"columns of both axes",
     [](ColumnsPlan &p) { p.integersOf(2, "starts").mutable_rank_steps(0)->set_communicator(overAll); }, "meaning",
     "kernel slice names no reference op"},
    {"columns by half a part",
     [](ColumnsPlan &p) { p.integersOf(2, "starts").mutable_rank_steps(0)->set_values(1, ColumnsPlan::columns / 2); },
     "meaning", "kernel slice names no reference op"},
    {"steps of a transpose",
     [](ColumnsPlan &p) {
       *p.integersOf(1, "perm").add_rank_steps() = p.integersOf(2, "starts").rank_steps(0);
       p.integersOf(1, "perm").mutable_rank_steps(0)->add_values(0);
     },
     "reader", "may only to where a part begins"},
    {"rows along data", [](ColumnsPlan &p) { p.yOf("u", 0).set_communicator(overData); }, "meaning",
     "it does not compute train.mul u"},
    {"the first rows on each rank", [](ColumnsPlan &p) { p.yOf("u", 0).set_rank_stride(0); }, "meaning",
     "it does not compute train.mul u"},
    {"rows a row further", [](ColumnsPlan &p) { p.yOf("u", 0).set_rank_stride(uint64_t(width) * sizeof(float)); },
     "meaning", "it does not compute train.mul u"},
    {"rows of terms", [](ColumnsPlan &p) { p.yOf("u", 0).set_buffer(p.term.buffer); }, "meaning",
     "it does not compute train.mul u"},
};

TEST(Columns, ProvesTheRightPlan) { EXPECT_EQ(ColumnsPlan().verdict(), "proven"); }

TEST(Columns, RefusesDefects) {
  for (const Defect &defect : defects) {
    ColumnsPlan plan;
    defect.make(plan);
    const std::string verdict = plan.verdict();
    EXPECT_TRUE(verdict.starts_with(defect.rule)) << defect.name << ": " << verdict;
    EXPECT_NE(verdict.find(defect.sentence), std::string::npos) << defect.name << ": " << verdict;
  }
}

} // namespace
} // namespace ds::check::meshes
