//===- TailPlan.h - a step that may end early -----------------------------===//
#pragma once

#include "compiler/check/Check.h"
#include "compiler/check/schedule/Effects.h"
#include "kernels/ElementwiseProgram.h"
#include "runtime/plan/format/PlanReader.h"
#include "test/unit/check/ReferenceBuilder.h"
#include "test/unit/runtime/PlanBuilder.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

/// A step of two micro-batches that updates a and c beside the backward of the last one as if no gradient had to be
/// clipped, and makes both again in its tail where one has to be.
namespace ds::check::tails {

using namespace ds::test;
using Tensor = PlanBuilder::Tensor;
using Collective = proto::CollectiveCommand;

constexpr int64_t rows = 63, columns = 16;
const Shape matrix = {rows, columns};
/// Of two ranks that share updates out, each has 512 elements; the last 16 of the second are padding.
constexpr int64_t sliceElements = 512;

/// The program for one device: h = x a, loss = sum h, da = x^T dh, dc = x^T dg; then SGD with momentum and clipping.
class TailReference : public ReferenceBuilder {
public:
  explicit TailReference(PlanBuilder &b) : ReferenceBuilder(b) {
    value("x", proto::DTYPE_F32, {1, rows});
    op("a", "train.read", {}, {"a"}, matrix);
    op("h", "train.matmul", {"x", "a"}, {}, {1, columns});
    op("sum", "train.reduce_sum", {"h"}, {}, {});
    proto::Integers &axes = *attribute("axes").mutable_integers();
    for (int64_t axis : {0, 1})
      axes.add_values(axis);
    for (const auto &[name, number] : {std::pair{"dh", 1.0}, {"dg", 2.0}}) {
      op(name, "train.constant", {}, {}, {1, columns});
      attribute("value").set_number(number);
    }
    effect("loss", "train.accumulate", {"sum"}, {"loss"});
    for (const auto &[name, gradient] : {std::pair{"a", "dh"}, {"c", "dg"}}) {
      op(std::string("d") + name, "train.matmul", {"x", gradient}, {}, matrix);
      attribute("trans_a").set_integer(1);
      effect(std::string("accumulate ") + name, "train.accumulate", {std::string("d") + name},
             {name + std::string("::gradient")});
    }
    beginFunction("update");
    op("rate", "train.read", {}, {"rate"}, {}, proto::DTYPE_F64);
    op("step", "train.read", {}, {"step"}, {}, proto::DTYPE_I64);
    for (const std::string name : {"a", "c"}) {
      op("gradient " + name, "train.read", {}, {name + "::gradient"}, matrix);
      op("part " + name, "train.block_sum_squares", {"gradient " + name}, {}, {1}, proto::DTYPE_F64);
    }
    op("norm", "train.global_norm", {"part a", "part c"}, {}, {}, proto::DTYPE_F64);
    op("clip", "train.clip_factor", {"norm"}, {}, {}, proto::DTYPE_F64);
    attribute("max_norm").set_number(1);
    for (const std::string name : {"a", "c"}) {
      effect("sgd " + name, "train.sgd", {"rate", "step", "clip"}, {name + "::gradient", name + "::momentum", name});
      attribute("momentum").set_number(0.9);
      attribute("weight_decay").set_number(0.01);
      attribute("nesterov").set_integer(0);
    }
    effect("increment", "train.increment", {}, {"step"});
  }
};

/// A parameter and what its update takes, in device memory, host memory and a file.
struct Trained {
  Tensor parameter, gradient, term;
  Tensor kept, fresh, hostGradient, momentum;
  Tensor file, next;
};

class TailPlan {
public:
  /// If `isSharded`, each of two ranks updates its slice of each parameter.
  explicit TailPlan(uint32_t ranks = 1, uint32_t microbatches = 2, bool isSharded = false)
      : builder(1, microbatches), isSharded_(isSharded) {
    builder.ranks(ranks);
    addStorage();
    for (const char *name : {"begin", "backward", "last", "update", "redo", "evaluate"})
      builder.routine(name);
    const TailReference reference(builder);
    addBegin();
    addBackward(reference, backward);
    addBackward(reference, last);
    builder.copy(last, out, rate, hostRate);
    builder.copy(last, out, step, hostStep);
    named(last, "step");
    for (Trained *one : {&a, &c})
      addEarlyUpdate(reference, *one);
    addUpdate(reference);
    addRedo(reference);
    builder.copy(evaluate, io, a.file, looked);
    const uint32_t step = builder.program("step");
    builder.call(step, begin);
    for (uint32_t k = 0; k + 1 < microbatches; ++k)
      builder.call(step, backward, k);
    for (const uint32_t routine : {last, update, redo})
      builder.call(step, routine, microbatches - 1);
    builder.metric(step, "loss", loss);
    proto::Tail &tail = *program().mutable_tail();
    tail.set_first_call(uint32_t(program().calls_size() - 1));
    *tail.mutable_unless_one() = operandOf(asked, proto::Operand::READ);
    builder.call(builder.program("evaluate"), evaluate);
  }

  /// With lives as the plan's commands use its buffers.
  std::string verdict() {
    addLives();
    const std::optional<Finding> finding = checkPlan(builder.plan);
    return finding ? finding->rule + ": " + finding->sentence : "proven";
  }

  proto::Program &program() { return *builder.role().mutable_programs(0); }
  proto::Routine &routine(uint32_t index) { return *builder.role().mutable_routines(int(index)); }
  proto::Buffer &bufferOf(const Tensor &tensor) { return *builder.role().mutable_buffers(int(tensor.buffer)); }
  proto::Command &commandOf(uint32_t routine, const std::string &name) {
    return *this->routine(routine).mutable_commands(int(places_.at({routine, name})));
  }
  /// Leaves a command of a routine's end out.
  void drop(uint32_t routine, const std::string &name) {
    this->routine(routine).mutable_commands()->DeleteSubrange(int(places_.at({routine, name})), 1);
  }
  /// By name: the event that the command of that name signals.
  uint32_t event(const std::string &name) {
    const auto [known, isNew] = events_.try_emplace(name);
    if (isNew)
      known->second = builder.event(name);
    return known->second;
  }

  static constexpr uint32_t begin = 0, backward = 1, last = 2, update = 3, redo = 4, evaluate = 5;

  PlanBuilder builder;
  uint32_t compute, host, out, in, io;
  Trained a, c;
  Tensor x, h, sum, loss, partials, norm, clip, asked, dh, dg, rate, step;
  Tensor one, hostRate, hostStep, hostClip, looked;

private:
  /// In another space than the device's.
  Tensor place(const Tensor &tensor, int arena, uint64_t alignment) {
    proto::Arena &space = *builder.role().mutable_arenas(arena);
    proto::Buffer &buffer = bufferOf(tensor);
    buffer.set_arena(uint32_t(arena));
    buffer.set_offset((space.bytes() + alignment - 1) / alignment * alignment);
    space.set_bytes(buffer.offset() + buffer.bytes());
    return tensor;
  }
  Tensor onHost(const Tensor &tensor) { return place(tensor, 1, 64); }
  Tensor inFile(const Tensor &tensor) { return place(tensor, 2, 4096); }
  Tensor floats(const std::string &name, const Shape &shape, proto::Buffer::Scope scope) {
    return builder.tensor(name, DType::F32, shape, scope);
  }

  /// What a file holds of a variable: all, or this rank's slice; and the device, which has it whole.
  Tensor held(const std::string &name, double value, proto::Variable::Kind kind) {
    if (!isSharded_)
      return builder.variable(name, DType::F32, matrix, value, kind);
    const uint32_t variable = builder.bareVariable(name, DType::F32, matrix, value, kind);
    const uint32_t bucket = builder.bucket("bucket of " + name, {variable}, sliceElements);
    return builder.bucketTensor(bucket, /*shard=*/kind == proto::Variable::OPTIMIZER);
  }

  Trained trained(const std::string &name) {
    constexpr auto runs = proto::Buffer::STEP;
    const Shape some = isSharded_ ? Shape{sliceElements} : matrix;
    Trained one;
    one.parameter = held(name, 0.5, proto::Variable::PARAMETER);
    builder.gradientOf(uint32_t(builder.plan.variables_size() - 1));
    one.file = inFile(held(name + "::momentum", 0, proto::Variable::OPTIMIZER));
    one.next = inFile(floats(name + "::momentum next", some, proto::Buffer::PLAN));
    bufferOf(one.next).set_next_of(one.file.buffer);
    one.gradient = floats(name + " gradient", one.parameter.shape, runs);
    one.term = floats(name + " term", matrix, proto::Buffer::CALL);
    for (const Tensor &sums : {one.gradient, one.term})
      bufferOf(sums).set_category(proto::Buffer::GRADIENTS);
    one.hostGradient = onHost(floats(name + " gradient on the host", some, runs));
    bufferOf(one.hostGradient).set_category(proto::Buffer::GRADIENTS);
    one.kept = onHost(floats(name + " kept", some, runs));
    one.fresh = onHost(floats(name + " fresh", some, runs));
    one.momentum = onHost(floats(name + " momentum on the host", some, runs));
    return one;
  }

  /// The elements of a parameter or gradient, without padding.
  static Tensor viewed(Tensor tensor) {
    tensor.shape = matrix;
    return tensor;
  }

  void stride(proto::Operand &operand) const {
    if (!isSharded_)
      return;
    operand.clear_shape();
    operand.add_shape(sliceElements);
    operand.set_rank_stride(4ul * sliceElements);
    operand.set_communicator(0);
  }
  /// Copies between host memory and what is updated of a parameter or gradient of the device.
  void copyOut(uint32_t routine, const Tensor &source, const Tensor &target) {
    stride(*builder.copy(routine, out, source, target).mutable_copy()->mutable_source());
  }
  void copyIn(uint32_t routine, const Tensor &source, const Tensor &target) {
    stride(*builder.copy(routine, in, source, target).mutable_copy()->mutable_target());
  }
  void gather(uint32_t routine, const Tensor &parameter, const std::string &after) {
    if (!isSharded_)
      return;
    proto::Command &command = builder.collective(routine, compute, Collective::ALL_GATHER, parameter, parameter);
    stride(*command.mutable_collective()->mutable_parts(0)->mutable_source());
    wait(command, event(after));
  }

  void addStorage() {
    constexpr auto runs = proto::Buffer::STEP;
    constexpr auto constant = proto::Variable::CONSTANT;
    builder.role().add_arenas()->set_space("host");
    builder.role().add_arenas()->set_space("nvme");
    builder.plan.mutable_nvme()->set_folder("/tmp");
    builder.plan.mutable_nvme()->set_block_bytes(4096);
    builder.plan.mutable_nvme()->set_queue_depth(1);
    compute = builder.queue("compute");
    host = builder.queue("host", proto::Queue::HOST);
    out = builder.queue("out", proto::Queue::COPY_OUT);
    in = builder.queue("in", proto::Queue::COPY_IN);
    io = builder.queue("io", proto::Queue::IO);
    a = trained("a");
    c = trained("c");
    rate = builder.variable("rate", DType::F64, {}, 0.01, constant);
    step = builder.variable("step", DType::I64, {}, 0, proto::Variable::OPTIMIZER);
    builder.bareVariable("loss", DType::F32, {}, 0, proto::Variable::OPTIMIZER);
    dh = builder.variable("dh", DType::F32, {1, columns}, 1, constant);
    dg = builder.variable("dg", DType::F32, {1, columns}, 2, constant);
    one = onHost(builder.variable("one", DType::F64, {}, 1, constant));
    x = floats("x", {1, rows}, proto::Buffer::CALL);
    h = floats("h", {1, columns}, proto::Buffer::CALL);
    sum = floats("sum", {}, runs);
    loss = floats("loss", {}, runs);
    partials = builder.tensor("partials", DType::F64, {2}, runs);
    norm = builder.tensor("norm", DType::F64, {}, runs);
    clip = builder.tensor("clip", DType::F64, {}, runs);
    asked = builder.tensor("asked", DType::F64, {}, runs);
    hostRate = onHost(builder.tensor("rate on the host", DType::F64, {}, runs));
    hostStep = onHost(builder.tensor("step on the host", DType::I64, {}, runs));
    looked = onHost(floats("what an evaluation reads", a.file.shape, proto::Buffer::CALL));
    hostClip = onHost(builder.tensor("clip on the host", DType::F64, {}, runs));
  }

  /// The last command of a routine gets a name, by which others of its micro-batch wait for it.
  proto::Command &named(uint32_t index, const std::string &name, const std::vector<std::string> &after = {}) {
    proto::Routine &routine = this->routine(index);
    places_[{index, name}] = uint32_t(routine.commands_size() - 1);
    proto::Command &command = *routine.mutable_commands(routine.commands_size() - 1);
    signal(command, event(routine.name() + " " + name));
    for (const std::string &other : after)
      wait(command, event(other));
    return command;
  }

  void addBegin() {
    for (const Tensor &zero : {a.gradient, c.gradient, loss})
      builder.fill(begin, compute, zero);
  }

  proto::Command &matmul(uint32_t routine, const std::vector<Tensor> &operands, bool transA) {
    proto::Command &command = builder.kernel(routine, compute, "matmul", "rrw", operands);
    attribute(command, "trans_a").set_integer(transA ? 1 : 0);
    attribute(command, "trans_b").set_integer(0);
    attribute(command, "bias").set_integer(0);
    attribute(command, "pieces").set_integer(2); // PlanBuilder's machine has two threads
    return command;
  }

  proto::Command &addTo(uint32_t routine, const Tensor &total, const Tensor &term) {
    proto::Command &command = builder.collective(routine, compute, Collective::ALL_REDUCE, term, total);
    accumulate(command);
    return command;
  }

  void addBackward(const TailReference &reference, uint32_t routine) {
    builder.feed(routine, compute, routine == backward ? builder.input("x", DType::F32, {1, rows}) : 0, x);
    reference.describe(matmul(routine, {x, viewed(a.parameter), h}, false), "h");
    named(routine, "h");
    proto::Command &total = builder.kernel(routine, compute, "reduce_sum", "rw", {h, sum});
    proto::Integers &axes = *attribute(total, "axes").mutable_integers();
    for (int64_t axis : {0, 1})
      axes.add_values(axis);
    reference.describe(total, "sum");
    reference.describe(addTo(routine, loss, sum), "loss");
    for (const auto &[trained, upper, name] : {std::tuple{&a, &dh, std::string("a")}, {&c, &dg, std::string("c")}}) {
      reference.describe(matmul(routine, {x, *upper, trained->term}, true), "d" + name);
      proto::Command &total = addTo(routine, viewed(trained->gradient), trained->term);
      reference.describe(total, "accumulate " + name);
      if (isSharded_) // as that of a bucket names all members: of other ranks' slices it is not known which this is
        reference.describe(total, name == "a" ? "accumulate c" : "accumulate a");
      named(routine, "gradient " + name);
    }
  }

  void sgd(const TailReference &reference, uint32_t routine, const std::string &name, const Tensor &parameter,
           const Trained &of, const Tensor &factor) {
    proto::Command &command = builder.kernel(routine, host, "sgd", "mrmrrr",
                                             {parameter, of.hostGradient, of.momentum, hostRate, hostStep, factor});
    attribute(command, "momentum").set_number(0.9);
    attribute(command, "weight_decay").set_number(0.01);
    attribute(command, "nesterov").set_integer(0);
    reference.describe(command, "sgd " + name);
  }

  void addEarlyUpdate(const TailReference &reference, const Trained &of) {
    const std::string name = &of == &a ? "a" : "c";
    copyOut(last, of.gradient, of.hostGradient);
    named(last, "take " + name, {"last gradient " + name});
    copyOut(last, of.parameter, of.kept);
    named(last, "keep " + name);
    copyOut(last, of.parameter, of.fresh);
    named(last, "fetch " + name);
    builder.copy(last, io, of.file, of.momentum);
    named(last, "read " + name);
    sgd(reference, last, name, of.fresh, of, one);
    named(last, "sgd " + name, {"last fetch " + name, "last read " + name});
    copyIn(last, of.fresh, of.parameter);
    named(last, "return " + name, {"last sgd " + name, "last h"});
    gather(last, of.parameter, "last return " + name);
    builder.copy(last, io, of.momentum, of.next);
    named(last, "write " + name, {"last sgd " + name});
  }

  void addUpdate(const TailReference &reference) {
    for (int i : {0, 1}) {
      proto::Command &squares = builder.kernel(update, compute, "block_sum_squares", "rw",
                                               {viewed(i == 0 ? a.gradient : c.gradient), partials});
      attribute(squares, "block").set_integer(1024);
      squares.mutable_kernel()->mutable_operands(1)->set_shape(0, 1);
      squares.mutable_kernel()->mutable_operands(1)->set_byte_offset(8ul * uint64_t(i));
      wait(squares, event(i == 0 ? "last take a" : "last take c")); // of the gradient, which lives on until here
      reference.describe(squares, i == 0 ? "part a" : "part c");
    }
    proto::Command &root = builder.kernel(update, compute, "global_norm", "rrw", {partials, partials, norm});
    proto::Integers &blocks = *attribute(root, "blocks").mutable_integers();
    for (int i : {0, 1}) {
      root.mutable_kernel()->mutable_operands(i)->set_shape(0, 1);
      root.mutable_kernel()->mutable_operands(i)->set_byte_offset(8ul * uint64_t(i));
      blocks.add_values(1024);
    }
    reference.describe(root, "norm");
    proto::Command &factor = builder.kernel(update, compute, "clip_factor", "rw", {norm, clip});
    attribute(factor, "max_norm").set_number(1);
    reference.describe(factor, "clip");
    named(update, "clip");
    setInstruction(builder.kernel(update, compute, "elementwise", "rw", {clip, asked}),
                   int64_t(kernels::ElementwiseOp::Copy), {0}, proto::DTYPE_F64);
    named(update, "asked");
    reference.describe(builder.kernel(update, compute, "increment", "m", {step}), "increment");
    named(update, "increment", {"last step"});
  }

  void addRedo(const TailReference &reference) {
    builder.copy(redo, out, clip, hostClip);
    named(redo, "clip", {"update asked"});
    for (const Trained *of : {&a, &c}) {
      const std::string name = of == &a ? "a" : "c";
      builder.copy(redo, io, of->file, of->momentum);
      named(redo, "read " + name);
      sgd(reference, redo, name, of->kept, *of, hostClip);
      named(redo, "sgd " + name, {"redo clip", "redo read " + name, "last keep " + name});
      copyIn(redo, of->kept, of->parameter);
      named(redo, "return " + name, {"redo sgd " + name});
      gather(redo, of->parameter, "redo return " + name);
      builder.copy(redo, io, of->momentum, of->next);
      named(redo, "write " + name, {"redo sgd " + name});
    }
  }

  /// From the first command that uses a buffer to the last; routines are called in their order.
  void addLives() {
    struct Use {
      uint32_t buffer, routine, command;
    };
    std::vector<Use> uses;
    for (uint32_t r = 0; r <= evaluate; ++r)
      for (int i = 0; i < routine(r).commands_size(); ++i)
        for (const Effect &effect : effectsOf(routine(r).commands(i)))
          uses.push_back({effect.operand->buffer(), r, uint32_t(i)});
    for (uint32_t b = 0; b < uint32_t(builder.role().buffers_size()); ++b) {
      proto::Buffer &buffer = *builder.role().mutable_buffers(int(b));
      buffer.clear_lives();
      for (const Use &use : uses) {
        if (use.buffer != b || buffer.scope() == proto::Buffer::PLAN)
          continue;
        const int lives = buffer.lives_size();
        if (lives == 0 ||
            (buffer.scope() == proto::Buffer::CALL && buffer.lives(lives - 1).birth_routine() != use.routine)) {
          buffer.add_lives()->set_birth_routine(use.routine);
          buffer.mutable_lives(lives)->set_program(use.routine == evaluate ? 1 : 0);
          buffer.mutable_lives(lives)->set_birth_command(use.command);
        }
        buffer.mutable_lives(buffer.lives_size() - 1)->set_death_routine(use.routine);
        buffer.mutable_lives(buffer.lives_size() - 1)->set_death_command(use.command);
      }
    }
  }

  const bool isSharded_;
  std::map<std::string, uint32_t> events_;
  std::map<std::pair<uint32_t, std::string>, uint32_t> places_;
};

} // namespace ds::check::tails
