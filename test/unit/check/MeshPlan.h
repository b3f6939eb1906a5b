//===- MeshPlan.h - a step on a mesh of data x tensor ----------------------===//
#pragma once

#include "compiler/check/Check.h"
#include "kernels/ElementwiseProgram.h"
#include "runtime/plan/format/PlanReader.h"
#include "test/unit/check/ReferenceBuilder.h"
#include "test/unit/check/UsedLives.h"
#include "test/unit/runtime/PlanBuilder.h"

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

/// Two layers as Megatron-LM cuts them (Shoeybi et al., 2019), the second's output along rows as with its sequence
/// parallelism (Korthikanti et al., 2022): u = (dropout((x w)^2) v) * g. Of four ranks, two have parts of each
/// micro-batch's weights: columns of w [8, 16] and rows of v [16, 8]; g is the same on all.
namespace ds::check::meshes {

using namespace ds::test;
using Tensor = PlanBuilder::Tensor;
using Collective = proto::CollectiveCommand;
using kernels::ElementwiseOp;

constexpr uint32_t dataAxis = 0, tensorAxis = 1;
constexpr uint32_t overData = 0, overTensor = 1, overAll = 2;
constexpr int64_t rows = 4, width = 8, hidden = 16, parts = 2;

/// The program for one device. Its gradients lack factors of 2, which the checker does not know of.
class MeshReference : public ReferenceBuilder {
public:
  explicit MeshReference(PlanBuilder &b) : ReferenceBuilder(b) {
    value("x", proto::DTYPE_F32, {rows, width});
    op("w", "train.read", {}, {"w"}, {width, hidden});
    op("v", "train.read", {}, {"v"}, {hidden, width});
    op("g", "train.read", {}, {"g"}, {width});
    op("ones", "train.constant", {}, {}, {rows, width});
    attribute("value").set_number(1);
    op("h", "train.matmul", {"x", "w"}, {}, {rows, hidden});
    op("a", "train.mul", {"h", "h"}, {}, {rows, hidden});
    dropout("m", "a");
    op("y", "train.matmul", {"m", "v"}, {}, {rows, width});
    op("u", "train.mul", {"y", "g"}, {}, {rows, width});
    op("sum", "train.reduce_sum", {"u"}, {}, {});
    axes({0, 1});
    effect("loss", "train.accumulate", {"sum"}, {"loss"});
    op("dy", "train.mul", {"ones", "g"}, {}, {rows, width});
    op("dg terms", "train.mul", {"ones", "y"}, {}, {rows, width});
    op("dg", "train.reduce_sum", {"dg terms"}, {}, {width});
    axes({0});
    op("dv", "train.matmul", {"m", "dy"}, {}, {hidden, width});
    attribute("trans_a").set_integer(1);
    op("dm", "train.matmul", {"dy", "v"}, {}, {rows, hidden});
    attribute("trans_b").set_integer(1);
    dropout("da", "dm");
    op("dh", "train.mul", {"da", "h"}, {}, {rows, hidden});
    op("dw", "train.matmul", {"x", "dh"}, {}, {width, hidden});
    attribute("trans_a").set_integer(1);
    for (const std::string name : {"w", "v", "g"})
      effect("accumulate " + name, "train.accumulate", {"d" + name}, {name + "::gradient"});
    beginFunction("update");
    op("rate", "train.read", {}, {"rate"}, {}, proto::DTYPE_F64);
    op("step", "train.read", {}, {"step"}, {}, proto::DTYPE_I64);
    op("one", "train.constant", {}, {}, {}, proto::DTYPE_F64);
    attribute("value").set_number(1);
    for (const std::string name : {"w", "v", "g"}) {
      effect("sgd " + name, "train.sgd", {"rate", "step", "one"}, {name + "::gradient", name});
      attribute("momentum").set_number(0);
      attribute("weight_decay").set_number(0);
      attribute("nesterov").set_integer(0);
    }
    effect("increment", "train.increment", {}, {"step"});
  }

private:
  void dropout(const std::string &name, const std::string &of) {
    op(name, "train.dropout", {of}, {}, {rows, hidden});
    attribute("ratio").set_number(0.5);
    attribute("op_id").set_integer(7);
  }
  void axes(const std::vector<int64_t> &axes) {
    for (const int64_t axis : axes) {
      proto::ReferenceOp &op = *ops().Mutable(ops().size() - 1);
      if (op.attributes_size() == 0)
        attribute("axes");
      op.mutable_attributes(0)->mutable_integers()->add_values(axis);
    }
  }
};

class MeshPlan {
public:
  MeshPlan() : builder(rows) {
    addMesh();
    addStorage();
    for (const char *name : {"begin", "microbatch", "update"})
      builder.routine(name);
    const MeshReference reference(builder);
    for (const Tensor &zero : {loss, dw, dv, dg})
      builder.fill(begin, compute, zero);
    addForward(reference);
    addBackward(reference);
    for (const auto &[name, parameter, gradient] : {std::tuple{"w", &w, &dw}, {"v", &v, &dv}, {"g", &g, &dg}})
      addUpdate(reference, name, *parameter, *gradient);
    reference.describe(named("increment", builder.kernel(update, compute, "increment", "m", {step})), "increment");
    const uint32_t program = builder.program("step");
    for (const uint32_t routine : {begin, microbatch, update})
      builder.call(program, routine);
    builder.metric(program, "loss", loss);
  }

  /// With lives as the plan's commands use its buffers; of a plan that the reader takes.
  std::string verdict() {
    setLivesAsUsed(builder.role());
    try {
      plan::validatePlan(builder.plan);
    } catch (const Error &error) {
      return std::string("reader: ") + error.what();
    }
    const std::optional<Finding> finding = checkPlan(builder.plan);
    return finding ? finding->rule + ": " + finding->sentence : "proven";
  }

  proto::Command &commandNamed(const std::string &name) {
    const auto &[routine, index] = places_.at(name);
    return *builder.role().mutable_routines(int(routine))->mutable_commands(int(index));
  }
  proto::CollectivePart &partOf(const std::string &name) {
    return *commandNamed(name).mutable_collective()->mutable_parts(0);
  }
  proto::Variable &variableNamed(const std::string &name) {
    for (proto::Variable &variable : *builder.plan.mutable_variables())
      if (variable.name() == name)
        return variable;
    throw std::runtime_error("no variable " + name);
  }
  /// Leaves a command out. Names of those behind it are lost.
  void drop(const std::string &name) {
    const auto [routine, index] = places_.at(name);
    builder.role().mutable_routines(int(routine))->mutable_commands()->DeleteSubrange(int(index), 1);
    for (auto &[other, place] : places_)
      if (place.first == routine && place.second > index)
        --place.second;
  }
  /// Puts a copy of a command behind itself.
  void repeat(const std::string &name) {
    const auto [routine, index] = places_.at(name);
    auto &commands = *builder.role().mutable_routines(int(routine))->mutable_commands();
    *commands.Add() = commands[int(index)];
    for (int i = commands.size() - 1; i > int(index) + 1; --i)
      commands.SwapElements(i, i - 1);
    for (auto &[other, place] : places_)
      if (place.first == routine && place.second > index)
        ++place.second;
  }

  static constexpr uint32_t begin = 0, microbatch = 1, update = 2;

  PlanBuilder builder;
  uint32_t compute;
  Tensor w, v, g, dw, dv, dg, rate, step, one, ones, loss;
  Tensor x, h, a, m, term, slice, us, u, sum, dgTerms, dgTerm, dgWhole, dy, dvTerm, dm, da, dh, dwTerm;

  /// Along the axis `tensor`, by parts of a dimension.
  static void shard(proto::Variable &variable, uint32_t dimension, int64_t size) {
    proto::AxisPlacement &along = *variable.mutable_placement()->add_axes();
    along.set_axis(tensorAxis);
    along.mutable_shard()->set_dimension(dimension);
    along.mutable_shard()->set_repeat(1);
    proto::Block &block = *along.mutable_shard()->add_blocks();
    block.set_stride(uint64_t(size));
    block.set_size(uint64_t(size));
  }

protected:
  proto::Command &named(const std::string &name, proto::Command &command) {
    for (uint32_t r = 0; r < uint32_t(builder.role().routines_size()); ++r) {
      const auto &commands = builder.role().routines(int(r)).commands();
      if (!commands.empty() && &commands[commands.size() - 1] == &command)
        places_[name] = {r, uint32_t(commands.size() - 1)};
    }
    return command;
  }
  Tensor floats(const std::string &name, const Shape &shape) {
    return builder.tensor(name, DType::F32, shape, proto::Buffer::CALL);
  }
  /// Room for `count` commands behind another: copies of it, of which this is the first one's place.
  std::pair<uint32_t, uint32_t> makeRoom(const std::string &behind, int count) {
    for (int i = 0; i < count; ++i)
      repeat(behind);
    return {places_.at(behind).first, places_.at(behind).second + 1};
  }

private:
  void addMesh() {
    proto::Plan &plan = builder.plan;
    plan.set_numerics("reassociated");
    for (const char *name : {"data", "tensor"}) {
      plan.mutable_world()->add_axes()->set_name(name);
      plan.mutable_world()->mutable_axes(plan.world().axes_size() - 1)->set_size(2);
    }
    plan.mutable_training()->set_train_batch_size(2 * rows);
    builder.role().set_ranks(1, 3);
    for (const auto &[name, axes] :
         {std::pair{"data", std::vector{dataAxis}}, {"tensor", {tensorAxis}}, {"all", {dataAxis, tensorAxis}}}) {
      proto::Communicator &communicator = *plan.add_communicators();
      communicator.set_name(name);
      communicator.mutable_axes()->Assign(axes.begin(), axes.end());
    }
    compute = builder.queue("compute");
  }

  /// A variable of which a rank's buffer holds a part.
  Tensor placed(const std::string &name, const Shape &whole, const Shape &part, double value,
                proto::Variable::Kind kind) {
    const uint32_t index = builder.bareVariable(name, DType::F32, whole, value, kind);
    for (size_t d = 0; d < whole.size(); ++d)
      if (whole[d] != part[d])
        shard(*builder.plan.mutable_variables(int(index)), uint32_t(d), part[d]);
    const Tensor tensor = builder.tensor(name, DType::F32, part, proto::Buffer::PLAN);
    builder.role().mutable_buffers(int(tensor.buffer))->set_variable(index);
    return tensor;
  }
  /// A parameter and its gradient.
  std::pair<Tensor, Tensor> trained(const std::string &name, const Shape &whole, const Shape &part) {
    const Tensor parameter = placed(name, whole, part, 0.5, proto::Variable::PARAMETER);
    const auto index = uint32_t(builder.plan.variables_size() - 1);
    const Tensor gradient = builder.tensor(name + "::gradient", DType::F32, part, proto::Buffer::STEP);
    builder.role().mutable_buffers(int(gradient.buffer))->set_category(proto::Buffer::GRADIENTS);
    const uint32_t of = builder.gradientOf(index);
    *builder.plan.mutable_variables(int(of))->mutable_placement() = builder.plan.variables(int(index)).placement();
    return {parameter, gradient};
  }
  void addStorage() {
    constexpr auto constant = proto::Variable::CONSTANT;
    constexpr int64_t some = hidden / parts, few = rows / parts;
    std::tie(w, dw) = trained("w", {width, hidden}, {width, some});
    std::tie(v, dv) = trained("v", {hidden, width}, {some, width});
    std::tie(g, dg) = trained("g", {width}, {width});
    rate = builder.variable("rate", DType::F64, {}, 0.01, constant);
    step = builder.variable("step", DType::I64, {}, 0, proto::Variable::OPTIMIZER);
    one = builder.variable("one", DType::F64, {}, 1, constant);
    ones = builder.variable("ones", DType::F32, {rows, width}, 1, constant);
    builder.bareVariable("loss", DType::F32, {}, 0, proto::Variable::OPTIMIZER);
    loss = builder.tensor("loss", DType::F32, {}, proto::Buffer::STEP);
    builder.input("x", DType::F32, {rows, width});
    x = floats("x", {rows, width});
    h = floats("h", {rows, some});
    a = floats("a", {rows, some});
    m = floats("m", {rows, some});
    term = floats("a term of y", {rows, width});
    slice = floats("rows of y", {few, width});
    us = floats("rows of u", {few, width});
    u = floats("u", {rows, width});
    sum = floats("sum", {});
    dgTerms = floats("rows of dg's terms", {few, width});
    dgTerm = floats("a term of dg", {width});
    dgWhole = floats("dg", {width});
    dy = floats("dy", {rows, width});
    dvTerm = floats("dv", {some, width});
    dm = floats("dm", {rows, some});
    da = floats("da", {rows, some});
    dh = floats("dh", {rows, some});
    dwTerm = floats("dw", {width, some});
  }

  void product(const MeshReference &reference, const std::string &name, const std::vector<Tensor> &operands,
               bool transA, bool transB) {
    proto::Command &command = named(name, builder.kernel(microbatch, compute, "matmul", "rrw", operands));
    attribute(command, "trans_a").set_integer(transA ? 1 : 0);
    attribute(command, "trans_b").set_integer(transB ? 1 : 0);
    attribute(command, "bias").set_integer(0);
    attribute(command, "pieces").set_integer(2); // PlanBuilder's machine has two threads
    reference.describe(command, name);
  }
  void multiply(const MeshReference &reference, const std::string &name, const std::vector<Tensor> &operands) {
    proto::Command &command = named(name, builder.kernel(microbatch, compute, "elementwise", "rrw", operands));
    setInstruction(command, int64_t(ElementwiseOp::Mul), {0, 1});
    reference.describe(command, name);
  }
  /// Each rank draws for its columns of the whole.
  void dropout(const MeshReference &reference, const std::string &name, const Tensor &of, const Tensor &to) {
    proto::Command &command = named(name, builder.kernel(microbatch, compute, "dropout", "rw", {of, to}));
    attribute(command, "ratio").set_number(0.5);
    attribute(command, "op_id").set_integer(7);
    proto::Integers &whole = *attribute(command, "whole").mutable_integers();
    for (const int64_t size : {rows, hidden})
      whole.add_values(size);
    proto::Integers &first = *attribute(command, "first").mutable_integers();
    proto::RankSteps &steps = *first.add_rank_steps();
    steps.set_communicator(overTensor);
    for (const int64_t size : {int64_t(0), hidden / parts}) {
      first.add_values(0);
      steps.add_values(size);
    }
    reference.describe(command, name);
  }
  void reduce(const MeshReference &reference, const std::string &name, const Tensor &of, const Tensor &to,
              const std::vector<int64_t> &axes) {
    proto::Command &command = named(name, builder.kernel(microbatch, compute, "reduce_sum", "rw", {of, to}));
    attribute(command, "axes").mutable_integers()->mutable_values()->Assign(axes.begin(), axes.end());
    reference.describe(command, name);
  }
  proto::Command &collective(const std::string &name, Collective::Kind kind, uint32_t communicator,
                             const Tensor &source, const Tensor &target) {
    proto::Command &command = named(name, builder.collective(microbatch, compute, kind, source, target));
    command.mutable_collective()->set_communicator(communicator);
    return command;
  }
  void addOver(const MeshReference &reference, const std::string &name, const Tensor &term, const Tensor &total) {
    proto::Command &command = collective(name, Collective::ALL_REDUCE, overData, term, total);
    accumulate(command);
    reference.describe(command, name);
  }

  void addForward(const MeshReference &reference) {
    named("x", builder.feed(microbatch, compute, 0, x));
    product(reference, "h", {x, w, h}, false, false);
    multiply(reference, "a", {h, h, a});
    dropout(reference, "m", a, m);
    product(reference, "y", {m, v, term}, false, false);
    collective("sum y", Collective::REDUCE_SCATTER, overTensor, term, slice);
    multiply(reference, "u", {slice, g, us});
    collective("gather u", Collective::ALL_GATHER, overTensor, us, u);
    reduce(reference, "sum", u, sum, {0, 1});
    addOver(reference, "loss", sum, loss);
  }

  void addBackward(const MeshReference &reference) {
    Tensor few = ones; // the constant 1 is the same in every part
    few.shape = slice.shape;
    multiply(reference, "dy", {ones, g, dy});
    multiply(reference, "dg terms", {few, slice, dgTerms});
    reduce(reference, "dg", dgTerms, dgTerm, {0});
    collective("sum dg", Collective::ALL_REDUCE, overTensor, dgTerm, dgWhole);
    addOver(reference, "accumulate g", dgWhole, dg);
    product(reference, "dv", {m, dy, dvTerm}, true, false);
    addOver(reference, "accumulate v", dvTerm, dv);
    product(reference, "dm", {dy, v, dm}, false, true);
    dropout(reference, "da", dm, da);
    multiply(reference, "dh", {da, h, dh});
    product(reference, "dw", {x, dh, dwTerm}, true, false);
    addOver(reference, "accumulate w", dwTerm, dw);
  }

  void addUpdate(const MeshReference &reference, const std::string &name, const Tensor &parameter,
                 const Tensor &gradient) {
    proto::Command &command =
        named("sgd " + name, builder.kernel(update, compute, "sgd", "mrrrr", {parameter, gradient, rate, step, one}));
    attribute(command, "momentum").set_number(0);
    attribute(command, "weight_decay").set_number(0);
    attribute(command, "nesterov").set_integer(0);
    reference.describe(command, "sgd " + name);
  }

  std::map<std::string, std::pair<uint32_t, uint32_t>> places_; // routine and index, by name
};

} // namespace ds::check::meshes
