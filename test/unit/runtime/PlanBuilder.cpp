//===- PlanBuilder.cpp - small plans by hand ------------------------------===//
#include "test/unit/runtime/PlanBuilder.h"
#include "core/DType.h"
#include "core/Shape.h"
#include "runtime/plan/format/PlanFile.h"
#include "runtime/plan/plan.pb.h"
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace ds::test {

PlanBuilder::PlanBuilder(uint64_t microBatch, uint64_t accumulation) {
  plan.set_format_version(plan::formatVersion);
  plan.set_compiler_revision("test");
  plan.set_model("by hand");
  plan.set_numerics("bit-equal");
  plan.mutable_machine()->set_device("cpu");
  plan.mutable_machine()->set_threads(2);
  plan.mutable_machine()->set_alignment(64);
  plan.mutable_training()->set_micro_batch_size(microBatch);
  plan.mutable_training()->set_accumulation_steps(accumulation);
  plan.mutable_training()->set_train_batch_size(microBatch * accumulation);
  plan.mutable_training()->set_checkpoint_buffer_bytes(1 << 20);
  addRole("all", 0, 0);
}

void PlanBuilder::addRole(const std::string &name, uint32_t first, uint32_t last) {
  proto::Role &role = *plan.add_roles();
  role.set_name(name);
  role.add_ranks(first);
  role.add_ranks(last);
  role.add_arenas()->set_space("device");
}

uint32_t PlanBuilder::channel(const std::string &name, uint32_t axis, uint32_t from, uint32_t to) {
  proto::Channel &channel = *plan.add_channels();
  channel.set_name(name);
  channel.set_axis(axis);
  channel.set_from(from);
  channel.set_to(to);
  return uint32_t(plan.channels_size() - 1);
}

proto::Command &PlanBuilder::send(uint32_t routine, uint32_t queue, uint32_t channel, const Tensor &source) {
  proto::Command &command = this->command(routine, queue);
  command.mutable_send()->set_channel(channel);
  *command.mutable_send()->add_sources() = operandOf(source, proto::Operand::READ);
  return command;
}

proto::Command &PlanBuilder::receive(uint32_t routine, uint32_t queue, uint32_t channel, const Tensor &target) {
  proto::Command &command = this->command(routine, queue);
  command.mutable_receive()->set_channel(channel);
  *command.mutable_receive()->add_targets() = operandOf(target, proto::Operand::WRITE);
  return command;
}

PlanBuilder::Tensor PlanBuilder::held(const std::string &variable) {
  int index = 0;
  while (plan.variables(index).name() != variable)
    ++index;
  const proto::Variable &known = plan.variables(index);
  const Tensor tensor = this->tensor(variable, DType(known.dtype()), Shape(known.shape().begin(), known.shape().end()),
                                     proto::Buffer::PLAN);
  role().mutable_buffers(int(tensor.buffer))->set_variable(uint32_t(index));
  return tensor;
}

uint32_t PlanBuilder::queue(const std::string &name, proto::Queue::Kind kind) {
  proto::Queue &queue = *role().add_queues();
  queue.set_name(name);
  queue.set_kind(kind);
  return uint32_t(role().queues_size() - 1);
}

uint32_t PlanBuilder::event(const std::string &name) {
  role().add_events()->set_name(name);
  return uint32_t(role().events_size() - 1);
}

uint32_t PlanBuilder::routine(const std::string &name) {
  role().add_routines()->set_name(name);
  return uint32_t(role().routines_size() - 1);
}

uint32_t PlanBuilder::program(const std::string &name) {
  role().add_programs()->set_name(name);
  return uint32_t(role().programs_size() - 1);
}

PlanBuilder::Tensor PlanBuilder::tensor(const std::string &name, DType dtype, const Shape &shape,
                                        proto::Buffer::Scope scope, uint32_t slots) {
  const auto bytes = uint64_t(elementCount(shape) * byteSize(dtype));
  const uint64_t stride = (bytes + 63) / 64 * 64;
  proto::Arena &arena = *role().mutable_arenas(0);
  proto::Buffer &buffer = *role().add_buffers();
  buffer.set_name(name);
  buffer.set_offset(arena.bytes());
  buffer.set_bytes(bytes);
  buffer.set_scope(scope);
  buffer.set_category(proto::Buffer::ACTIVATIONS);
  buffer.set_slots(slots);
  for (uint32_t slot = 1; slot < slots; ++slot)
    buffer.add_slot_offsets(arena.bytes() + slot * stride);
  arena.set_bytes(arena.bytes() + stride * slots);
  return {uint32_t(role().buffers_size() - 1), dtype, shape};
}

void PlanBuilder::ranks(uint32_t ranks) {
  proto::Axis &axis = *plan.mutable_world()->add_axes();
  axis.set_name("data");
  axis.set_size(ranks);
  plan.mutable_training()->set_train_batch_size(plan.training().train_batch_size() * ranks);
  for (proto::Input &input : *plan.mutable_inputs())
    dealOut(plan, input);
  role().set_ranks(1, ranks - 1);
  proto::Communicator &communicator = *plan.add_communicators();
  communicator.set_name("data");
  communicator.add_axes(0);
}

uint32_t PlanBuilder::bucket(const std::string &name, const std::vector<uint32_t> &variables, uint64_t unit) {
  const uint64_t ranks = plan.world().axes(0).size();
  proto::Bucket &bucket = *plan.add_buckets();
  bucket.set_name(name);
  bucket.set_dtype(plan.variables(int(variables[0])).dtype());
  uint64_t end = 0;
  for (uint32_t variable : variables) {
    proto::BucketMember &member = *bucket.add_members();
    member.set_variable(variable);
    member.set_element((end + unit - 1) / unit * unit);
    const auto &shape = plan.variables(int(variable)).shape();
    end = member.element() + uint64_t(elementCount({shape.data(), size_t(shape.size())}));
  }
  bucket.set_elements((end + ranks * unit - 1) / (ranks * unit) * (ranks * unit));
  return uint32_t(plan.buckets_size() - 1);
}

PlanBuilder::Tensor PlanBuilder::bucketTensor(uint32_t bucket, bool shard) {
  const proto::Bucket &held = plan.buckets(int(bucket));
  const uint64_t elements = held.elements() / (shard ? plan.world().axes(0).size() : 1);
  const Tensor tensor = this->tensor(held.name(), DType(held.dtype()), {int64_t(elements)}, proto::Buffer::PLAN);
  role().mutable_buffers(int(tensor.buffer))->set_bucket(bucket);
  if (!shard)
    return tensor;
  proto::Window &window = *plan.mutable_buckets(int(bucket))->mutable_placement()->mutable_window();
  window.set_stride(elements);
  window.set_count(elements);
  return tensor;
}

PlanBuilder::Tensor PlanBuilder::variable(const std::string &name, DType dtype, const Shape &shape, double value,
                                          proto::Variable::Kind kind) {
  const uint32_t index = bareVariable(name, dtype, shape, value, kind);
  const Tensor tensor = this->tensor(name, dtype, shape, proto::Buffer::PLAN);
  role().mutable_buffers(int(tensor.buffer))->set_variable(index);
  return tensor;
}

uint32_t PlanBuilder::bareVariable(const std::string &name, DType dtype, const Shape &shape, double value,
                                   proto::Variable::Kind kind) {
  proto::Variable &variable = *plan.add_variables();
  variable.set_name(name);
  variable.set_dtype(proto::DType(dtype));
  variable.mutable_shape()->Assign(shape.begin(), shape.end());
  variable.set_kind(kind);
  variable.set_persistent(true);
  variable.mutable_source()->set_fill(value);
  return uint32_t(plan.variables_size() - 1);
}

uint32_t PlanBuilder::gradientOf(uint32_t parameter) {
  const proto::Variable &of = plan.variables(int(parameter));
  const uint32_t index = bareVariable(of.name() + "::gradient", DType(of.dtype()),
                                      Shape(of.shape().begin(), of.shape().end()), 0, proto::Variable::GRADIENT);
  plan.mutable_variables(int(index))->set_of(parameter);
  return index;
}

uint32_t PlanBuilder::input(const std::string &name, DType dtype, const Shape &shape) {
  proto::Input &input = *plan.add_inputs();
  input.set_name(name);
  input.set_dtype(proto::DType(dtype));
  input.mutable_shape()->Assign(shape.begin(), shape.end());
  dealOut(plan, input);
  return uint32_t(plan.inputs_size() - 1);
}

void dealOut(const proto::Plan &plan, proto::Input &input) {
  for (int axis = 0; axis < plan.world().axes_size(); ++axis)
    if (plan.world().axes(axis).name() == "data" && plan.world().axes(axis).size() > 1) {
      proto::AxisPlacement &placement = *input.mutable_placement()->add_axes();
      placement.set_axis(uint32_t(axis));
      placement.set_varies(true);
    }
}

proto::Operand operandOf(const PlanBuilder::Tensor &tensor, proto::Operand::Access access) {
  proto::Operand operand;
  operand.set_buffer(tensor.buffer);
  operand.set_dtype(proto::DType(tensor.dtype));
  operand.mutable_shape()->Assign(tensor.shape.begin(), tensor.shape.end());
  operand.set_access(access);
  return operand;
}

proto::Command &PlanBuilder::command(uint32_t routine, uint32_t queue) {
  proto::Command &command = *role().mutable_routines(int(routine))->add_commands();
  command.set_queue(queue);
  return command;
}

proto::Command &PlanBuilder::kernel(uint32_t routine, uint32_t queue, const std::string &kernel,
                                    const std::string &accesses, const std::vector<Tensor> &operands) {
  proto::Command &command = this->command(routine, queue);
  command.mutable_kernel()->set_kernel(kernel);
  for (size_t i = 0; i < operands.size(); ++i)
    *command.mutable_kernel()->add_operands() = operandOf(operands[i], accesses[i] == 'r'   ? proto::Operand::READ
                                                                       : accesses[i] == 'w' ? proto::Operand::WRITE
                                                                       : accesses[i] == 'm' ? proto::Operand::READ_WRITE
                                                                                            : proto::Operand::SCRATCH);
  return command;
}

proto::Command &PlanBuilder::fill(uint32_t routine, uint32_t queue, const Tensor &target) {
  proto::Command &command = this->command(routine, queue);
  *command.mutable_fill()->mutable_target() = operandOf(target, proto::Operand::WRITE);
  return command;
}

proto::Command &PlanBuilder::copy(uint32_t routine, uint32_t queue, const Tensor &source, const Tensor &target) {
  proto::Command &command = this->command(routine, queue);
  *command.mutable_copy()->mutable_source() = operandOf(source, proto::Operand::READ);
  *command.mutable_copy()->mutable_target() = operandOf(target, proto::Operand::WRITE);
  return command;
}

proto::Command &PlanBuilder::collective(uint32_t routine, uint32_t queue, proto::CollectiveCommand::Kind kind,
                                        const Tensor &source, const Tensor &target) {
  const bool sums = kind == proto::CollectiveCommand::REDUCE_SCATTER || kind == proto::CollectiveCommand::ALL_REDUCE;
  const auto scratch = sums ? tensor("scratch", DType::U8, {1024}, proto::Buffer::CALL) : Tensor{};
  proto::Command &command = this->command(routine, queue);
  command.mutable_collective()->set_kind(kind);
  proto::CollectivePart &part = *command.mutable_collective()->add_parts();
  *part.mutable_source() = operandOf(source, proto::Operand::READ);
  *part.mutable_target() = operandOf(target, proto::Operand::WRITE);
  if (sums)
    *part.mutable_scratch() = operandOf(scratch, proto::Operand::SCRATCH);
  return command;
}

proto::Command &PlanBuilder::feed(uint32_t routine, uint32_t queue, uint32_t input, const Tensor &target) {
  proto::Command &command = this->command(routine, queue);
  command.mutable_feed()->set_input(input);
  *command.mutable_feed()->mutable_target() = operandOf(target, proto::Operand::WRITE);
  return command;
}

void PlanBuilder::call(uint32_t program, uint32_t routine, uint32_t microbatch) {
  proto::Call &call = *role().mutable_programs(int(program))->add_calls();
  call.set_routine(routine);
  call.set_microbatch(microbatch);
}

void PlanBuilder::metric(uint32_t program, const std::string &name, const Tensor &source) {
  proto::Metric &metric = *role().mutable_programs(int(program))->add_metrics();
  metric.set_name(name);
  *metric.mutable_source() = operandOf(source, proto::Operand::READ);
}

void PlanBuilder::life(const Tensor &tensor, uint32_t program, uint32_t birthRoutine, uint32_t birthCommand,
                       uint32_t deathRoutine, uint32_t deathCommand) {
  proto::Life &life = *role().mutable_buffers(int(tensor.buffer))->add_lives();
  life.set_program(program);
  life.set_birth_routine(birthRoutine);
  life.set_birth_command(birthCommand);
  life.set_death_routine(deathRoutine);
  life.set_death_command(deathCommand);
}

void PlanBuilder::implements(proto::Command &command, const std::string &name) {
  proto::ReferenceOp &op = *plan.mutable_reference()->add_ops();
  op.set_op("train.test");
  op.set_name(name);
  op.set_function("microbatch");
  command.add_reference(uint32_t(plan.reference().ops_size() - 1));
}

void wait(proto::Command &command, uint32_t event, uint32_t delay) {
  proto::Wait &wait = *command.add_waits();
  wait.set_event(event);
  wait.set_delay(delay);
}

void accumulate(proto::Command &collective) {
  proto::CollectivePart &part = *collective.mutable_collective()->mutable_parts(0);
  part.set_accumulate(true);
  part.mutable_target()->set_access(proto::Operand::READ_WRITE);
}

proto::Attribute &attribute(proto::Command &kernel, const char *name) {
  proto::Attribute &attribute = *kernel.mutable_kernel()->add_attributes();
  attribute.set_name(name);
  return attribute;
}

void setInstruction(proto::Command &elementwise, int64_t opcode, const std::vector<int64_t> &operands,
                    proto::DType type) {
  proto::Integers &program = *attribute(elementwise, "program").mutable_integers();
  program.add_values(opcode);
  program.add_values(type);
  for (size_t i = 0; i < 3; ++i)
    program.add_values(i < operands.size() ? operands[i] : -1);
  attribute(elementwise, "constants").mutable_numbers();
  attribute(elementwise, "results").mutable_integers()->add_values(int64_t(operands.size()));
}

void signal(proto::Command &command, uint32_t event) { command.add_signals(event); }

} // namespace ds::test
