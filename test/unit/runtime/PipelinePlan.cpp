//===- PipelinePlan.cpp - two stages of a pipeline, by hand ---------------===//
#include "test/unit/runtime/PipelinePlan.h"

#include "core/DType.h"
#include "runtime/plan/plan.pb.h"
#include "test/unit/runtime/PipelineReference.h"
#include "test/unit/runtime/PlanBuilder.h"

#include <cstdint>
#include <string>
#include <vector>

namespace ds::test {
namespace {

using Kind = proto::CollectiveCommand;
using Tensor = PlanBuilder::Tensor;

constexpr uint32_t data = 0, pipe = 1; // communicators

void axis(PlanBuilder &b, const char *name, uint32_t size) {
  proto::Axis &axis = *b.plan.mutable_world()->add_axes();
  axis.set_name(name);
  axis.set_size(size);
  proto::Communicator &communicator = *b.plan.add_communicators();
  communicator.set_name(name);
}

/// World, communicators and channels of `stages` stages.
PlanBuilder emptyPlan(uint32_t stages, uint32_t microbatches, uint32_t dataRanks) {
  PlanBuilder b(1, microbatches);
  b.plan.mutable_training()->set_train_batch_size(uint64_t(microbatches) * dataRanks);
  b.plan.clear_roles();
  axis(b, "pipe", stages);
  axis(b, "data", dataRanks);
  b.plan.mutable_communicators()->SwapElements(0, 1);
  b.plan.mutable_communicators(data)->add_axes(1);
  b.plan.mutable_communicators(pipe)->add_axes(0);
  return b;
}

proto::Command &matmul(PlanBuilder &b, uint32_t routine, uint32_t queue, const std::vector<Tensor> &operands,
                       bool transA = false, bool transB = false) {
  proto::Command &command = b.kernel(routine, queue, "matmul", "rrw", operands);
  attribute(command, "trans_a").set_integer(transA ? 1 : 0);
  attribute(command, "trans_b").set_integer(transB ? 1 : 0);
  attribute(command, "bias").set_integer(0);
  attribute(command, "pieces").set_integer(2); // PlanBuilder's machine has two threads
  return command;
}

/// Adds a micro-batch's part to what a step sums, over the data ranks in their order.
proto::Command &sum(PlanBuilder &b, uint32_t routine, uint32_t queue, const Tensor &term, const Tensor &total) {
  proto::Command &command = b.collective(routine, queue, Kind::ALL_REDUCE, term, total);
  accumulate(command);
  return command;
}

/// What every rank has of the optimizer.
struct Optimizer {
  Tensor rate, clip, step, partials, norm;
};

Optimizer optimizer(PlanBuilder &b, bool isFirst) {
  const auto constant = proto::Variable::CONSTANT;
  const Tensor rate = isFirst ? b.variable("rate", DType::F64, {}, 0.01, constant) : b.held("rate");
  const Tensor clip = isFirst ? b.variable("clip", DType::F64, {}, 1, constant) : b.held("clip");
  const Tensor step = isFirst ? b.variable("step", DType::I64, {}, 0, proto::Variable::OPTIMIZER) : b.held("step");
  const Tensor partials = b.tensor("partials", DType::F64, {2}, proto::Buffer::STEP);
  const Tensor norm = b.tensor("norm", DType::F64, {}, proto::Buffer::STEP);
  return {rate, clip, step, partials, norm};
}

/// The part of the norm that stage `stage` has.
void partial(PlanBuilder &b, uint32_t routine, uint32_t queue, const Tensor &gradient, const Optimizer &o,
             uint32_t stage) {
  proto::Command &command = b.kernel(routine, queue, "block_sum_squares", "rw", {gradient, o.partials});
  attribute(command, "block").set_integer(1024);
  proto::Operand &part = *command.mutable_kernel()->mutable_operands(1);
  part.set_shape(0, 1);
  part.set_byte_offset(8ul * stage);
}

void norm(PlanBuilder &b, uint32_t routine, uint32_t queue, const Optimizer &o) {
  proto::Command &command = b.kernel(routine, queue, "global_norm", "rrw", {o.partials, o.partials, o.norm});
  proto::Integers &blocks = *attribute(command, "blocks").mutable_integers();
  for (int stage : {0, 1}) {
    proto::Operand &part = *command.mutable_kernel()->mutable_operands(stage);
    part.set_shape(0, 1);
    part.set_byte_offset(8ul * uint64_t(stage));
    blocks.add_values(1024);
  }
}

void sgd(PlanBuilder &b, uint32_t routine, uint32_t queue, const Tensor &parameter, const Tensor &gradient,
         const Optimizer &o) {
  proto::Command &command = b.kernel(routine, queue, "sgd", "mrrrr", {parameter, gradient, o.rate, o.step, o.clip});
  attribute(command, "momentum").set_number(0);
  attribute(command, "weight_decay").set_number(0.01);
  attribute(command, "nesterov").set_integer(0);
}

/// The norm of all stages' gradients, and the update of one; returns the index of its last command.
uint32_t update(PlanBuilder &b, uint32_t routine, uint32_t queue, const Tensor &parameter, const Tensor &gradient,
                const Optimizer &o, uint32_t stage) {
  partial(b, routine, queue, gradient, o, stage);
  proto::CollectivePart &gather =
      *b.collective(routine, queue, Kind::ALL_GATHER, o.partials, o.partials).mutable_collective()->mutable_parts(0);
  b.role().mutable_routines(int(routine))->mutable_commands(1)->mutable_collective()->set_communicator(pipe);
  gather.mutable_source()->set_shape(0, 1);
  gather.mutable_source()->set_rank_stride(8);
  gather.mutable_source()->set_communicator(pipe);
  norm(b, routine, queue, o);
  sgd(b, routine, queue, parameter, gradient, o);
  b.kernel(routine, queue, "increment", "m", {o.step});
  return 4;
}

Tensor parameter(PlanBuilder &b, const char *name, const Shape &shape) {
  const Tensor tensor = b.variable(name, DType::F32, shape, 0);
  proto::Source::Random &random =
      *b.plan.mutable_variables(b.plan.variables_size() - 1)->mutable_source()->mutable_random();
  random.set_distribution("normal");
  random.set_deviation(0.5);
  return tensor;
}

proto::Command &total(PlanBuilder &b, uint32_t routine, uint32_t queue, const Tensor &y, const Tensor &sum) {
  proto::Command &command = b.kernel(routine, queue, "reduce_sum", "rw", {y, sum});
  proto::Integers &axes = *attribute(command, "axes").mutable_integers();
  axes.add_values(0);
  axes.add_values(1);
  return command;
}

/// 1F1B; the routines are numbered as the stages add them.
void callFirstStage(PlanBuilder &b, uint32_t step, uint32_t microbatches) {
  constexpr uint32_t begin = 0, forward = 1, receive = 2, backward = 3, update = 4;
  b.call(step, begin);
  b.call(step, forward, 0);
  for (uint32_t m = 0; m < microbatches; ++m) {
    b.call(step, receive, m);
    if (m + 1 < microbatches)
      b.call(step, forward, m + 1);
    b.call(step, backward, m);
  }
  b.call(step, update, microbatches - 1);
}

void callSecondStage(PlanBuilder &b, uint32_t step, uint32_t microbatches) {
  constexpr uint32_t begin = 0, receive = 1, forward = 2, backward = 3, update = 4;
  b.call(step, begin);
  b.call(step, receive, 0);
  for (uint32_t m = 0; m < microbatches; ++m) {
    if (m + 1 < microbatches)
      b.call(step, receive, m + 1);
    b.call(step, forward, m);
    b.call(step, backward, m);
  }
  b.call(step, update, microbatches - 1);
}

void firstStage(PlanBuilder &b, uint32_t microbatches) {
  const uint32_t compute = b.queue("compute"), forwards = b.queue("forward", proto::Queue::MESSAGE),
                 backwards = b.queue("backward", proto::Queue::MESSAGE),
                 losses = b.queue("losses", proto::Queue::MESSAGE);
  const uint32_t computed = b.event("computed"), sent = b.event("sent"), received = b.event("received"),
                 taken = b.event("taken");
  const Tensor a = parameter(b, "a", {5, 3});
  const Optimizer o = optimizer(b, true);
  const Tensor x = b.tensor("x", DType::F32, {1, 5}, proto::Buffer::SLOT, 2);
  const Tensor h = b.tensor("h", DType::F32, {1, 3}, proto::Buffer::SLOT, 2);
  const Tensor dh = b.tensor("dh", DType::F32, {1, 3}, proto::Buffer::SLOT, 2);
  const Tensor da = b.tensor("da", DType::F32, {5, 3}, proto::Buffer::CALL);
  const Tensor gradient = b.tensor("gradient", DType::F32, {5, 3}, proto::Buffer::STEP);
  const Tensor loss = b.tensor("loss", DType::F32, {}, proto::Buffer::STEP);
  const uint32_t begin = b.routine("begin"), forward = b.routine("forward"), receive = b.routine("receive"),
                 backward = b.routine("backward"), update = b.routine("update");
  b.fill(begin, compute, gradient);
  b.feed(forward, compute, b.input("x", DType::F32, {1, 5}), x);
  proto::Command &product = matmul(b, forward, compute, {x, a, h});
  wait(product, sent, 2);
  signal(product, computed);
  proto::Command &message = b.send(forward, forwards, 0, h);
  wait(message, computed);
  signal(message, sent);
  proto::Command &answer = b.receive(receive, backwards, 1, dh);
  wait(answer, taken, 2);
  signal(answer, received);
  proto::Command &gradients = matmul(b, backward, compute, {x, dh, da}, true);
  wait(gradients, received);
  signal(gradients, taken);
  sum(b, backward, compute, da, gradient);
  const uint32_t last = ds::test::update(b, update, compute, a, gradient, o, 0);
  b.receive(update, losses, 2, loss);
  const uint32_t step = b.program("step");
  callFirstStage(b, step, microbatches);
  b.metric(step, "loss", loss);
  b.metric(step, "grad_norm", o.norm);
  b.life(x, step, forward, 0, backward, 0);
  b.life(h, step, forward, 1, forward, 2);
  b.life(dh, step, receive, 0, backward, 0);
  b.life(da, step, backward, 0, backward, 1);
  b.life(gradient, step, begin, 0, update, last);
  b.life(loss, step, update, last + 1, update, last + 1);
  b.life(o.partials, step, update, 0, update, 2);
  b.life(o.norm, step, update, 2, update, last);
}

void secondStage(PlanBuilder &b, uint32_t microbatches) {
  const uint32_t backwards = b.queue("backward", proto::Queue::MESSAGE), compute = b.queue("compute"),
                 losses = b.queue("losses", proto::Queue::MESSAGE),
                 forwards = b.queue("forward", proto::Queue::MESSAGE);
  const uint32_t received = b.event("received"), taken = b.event("taken"), computed = b.event("computed"),
                 sent = b.event("sent"), summed = b.event("summed");
  const Tensor c = parameter(b, "c", {3, 2});
  const Tensor dy = b.variable("dy", DType::F32, {1, 2}, 1, proto::Variable::CONSTANT);
  const Optimizer o = optimizer(b, false);
  const Tensor h = b.tensor("h", DType::F32, {1, 3}, proto::Buffer::SLOT, 2);
  const Tensor dh = b.tensor("dh", DType::F32, {1, 3}, proto::Buffer::SLOT, 2);
  const Tensor y = b.tensor("y", DType::F32, {1, 2}, proto::Buffer::CALL);
  const Tensor one = b.tensor("sum", DType::F32, {}, proto::Buffer::CALL);
  const Tensor dc = b.tensor("dc", DType::F32, {3, 2}, proto::Buffer::CALL);
  const Tensor gradient = b.tensor("gradient", DType::F32, {3, 2}, proto::Buffer::STEP);
  const Tensor loss = b.tensor("loss", DType::F32, {}, proto::Buffer::STEP);
  const uint32_t begin = b.routine("begin"), receive = b.routine("receive"), forward = b.routine("forward"),
                 backward = b.routine("backward"), update = b.routine("update");
  b.fill(begin, compute, gradient);
  b.fill(begin, compute, loss);
  proto::Command &message = b.receive(receive, forwards, 0, h);
  wait(message, taken, 2);
  signal(message, received);
  wait(matmul(b, forward, compute, {h, c, y}), received);
  total(b, forward, compute, y, one);
  signal(sum(b, forward, compute, one, loss), summed);
  signal(matmul(b, backward, compute, {h, dy, dc}, true), taken);
  proto::Command &gradients = matmul(b, backward, compute, {dy, c, dh}, false, true);
  wait(gradients, sent, 2);
  signal(gradients, computed);
  sum(b, backward, compute, dc, gradient);
  proto::Command &answer = b.send(backward, backwards, 1, dh);
  wait(answer, computed);
  signal(answer, sent);
  const uint32_t last = ds::test::update(b, update, compute, c, gradient, o, 1);
  wait(b.send(update, losses, 2, loss), summed);
  const uint32_t step = b.program("step");
  callSecondStage(b, step, microbatches);
  b.life(h, step, receive, 0, backward, 0);
  b.life(dh, step, backward, 1, backward, 3);
  b.life(y, step, forward, 0, forward, 1);
  b.life(one, step, forward, 1, forward, 2);
  b.life(dc, step, backward, 0, backward, 2);
  b.life(gradient, step, begin, 0, update, last);
  b.life(loss, step, begin, 1, update, last + 1);
  b.life(o.partials, step, update, 0, update, 2);
  b.life(o.norm, step, update, 2, update, last);
}

/// What all_reduces receive into lives in the command that has it.
void addScratchLives(PlanBuilder &b) {
  for (proto::Role &role : *b.plan.mutable_roles())
    for (int r = 0; r < role.routines_size(); ++r)
      for (int c = 0; c < role.routines(r).commands_size(); ++c)
        for (const proto::CollectivePart &part : role.routines(r).commands(c).collective().parts())
          if (part.has_scratch()) {
            proto::Life &life = *role.mutable_buffers(int(part.scratch().buffer()))->add_lives();
            life.set_birth_routine(uint32_t(r));
            life.set_birth_command(uint32_t(c));
            life.set_death_routine(uint32_t(r));
            life.set_death_command(uint32_t(c));
          }
}

/// Buffers whose sums are followed micro-batch by micro-batch.
void markGradients(PlanBuilder &b) {
  for (proto::Role &role : *b.plan.mutable_roles())
    for (proto::Buffer &buffer : *role.mutable_buffers())
      if (buffer.name().starts_with("gradient") || buffer.name() == "da" || buffer.name() == "dc")
        buffer.set_category(proto::Buffer::GRADIENTS);
}

} // namespace

PlanBuilder pipelinePlan(uint32_t microbatches, uint32_t dataRanks) {
  PlanBuilder b = emptyPlan(2, microbatches, dataRanks);
  b.channel("forward", 0, 0, 1);
  b.channel("backward", 0, 1, 0);
  b.channel("loss", 0, 1, 0);
  b.addRole("stage0", 0, dataRanks - 1);
  firstStage(b, microbatches);
  b.addRole("stage1", dataRanks, 2 * dataRanks - 1);
  secondStage(b, microbatches);
  markGradients(b);
  addScratchLives(b);
  describePipeline(b);
  return b;
}

PlanBuilder wholePlan(uint32_t microbatches) {
  PlanBuilder b = emptyPlan(1, microbatches, 1);
  b.addRole("all", 0, 0);
  const uint32_t compute = b.queue("compute");
  const Tensor a = parameter(b, "a", {5, 3});
  const Optimizer o = optimizer(b, true);
  const Tensor c = parameter(b, "c", {3, 2});
  const Tensor dy = b.variable("dy", DType::F32, {1, 2}, 1, proto::Variable::CONSTANT);
  const auto call = proto::Buffer::CALL;
  const Tensor x = b.tensor("x", DType::F32, {1, 5}, call), h = b.tensor("h", DType::F32, {1, 3}, call),
               dh = b.tensor("dh", DType::F32, {1, 3}, call), da = b.tensor("da", DType::F32, {5, 3}, call),
               y = b.tensor("y", DType::F32, {1, 2}, call), one = b.tensor("sum", DType::F32, {}, call),
               dc = b.tensor("dc", DType::F32, {3, 2}, call);
  const Tensor gradientA = b.tensor("gradient a", DType::F32, {5, 3}, proto::Buffer::STEP),
               gradientC = b.tensor("gradient c", DType::F32, {3, 2}, proto::Buffer::STEP),
               loss = b.tensor("loss", DType::F32, {}, proto::Buffer::STEP);
  const uint32_t begin = b.routine("begin"), microbatch = b.routine("microbatch"), update = b.routine("update");
  for (const Tensor &total : {gradientA, gradientC, loss})
    b.fill(begin, compute, total);
  b.feed(microbatch, compute, b.input("x", DType::F32, {1, 5}), x);
  matmul(b, microbatch, compute, {x, a, h});
  matmul(b, microbatch, compute, {h, c, y});
  total(b, microbatch, compute, y, one);
  matmul(b, microbatch, compute, {h, dy, dc}, true);
  matmul(b, microbatch, compute, {dy, c, dh}, false, true);
  matmul(b, microbatch, compute, {x, dh, da}, true);
  sum(b, microbatch, compute, one, loss);
  sum(b, microbatch, compute, da, gradientA);
  sum(b, microbatch, compute, dc, gradientC);
  partial(b, update, compute, gradientA, o, 0);
  partial(b, update, compute, gradientC, o, 1);
  norm(b, update, compute, o);
  sgd(b, update, compute, a, gradientA, o);
  sgd(b, update, compute, c, gradientC, o);
  b.kernel(update, compute, "increment", "m", {o.step});
  const uint32_t step = b.program("step");
  b.call(step, begin);
  for (uint32_t m = 0; m < microbatches; ++m)
    b.call(step, microbatch, m);
  b.call(step, update, microbatches - 1);
  b.metric(step, "loss", loss);
  b.metric(step, "grad_norm", o.norm);
  return b;
}

PlanBuilder failingPipelinePlan(uint32_t microbatches) {
  PlanBuilder b = pipelinePlan(microbatches);
  b.plan.mutable_inputs(0)->set_dtype(proto::DTYPE_I32);
  b.plan.mutable_inputs(0)->set_limit(10);
  proto::Command &feed = *b.plan.mutable_roles(0)->mutable_routines(1)->mutable_commands(0);
  feed.mutable_feed()->mutable_target()->set_dtype(proto::DTYPE_I32);
  return b;
}

} // namespace ds::test
