//===- Lengths.cpp - plans for several sizes of one dimension --------------===//
#include "runtime/plan/format/Lengths.h"

#include "runtime/plan/format/PlanChecks.h"
#include "runtime/plan/plan.pb.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ds::plan {

std::vector<uint64_t> sizesOf(const proto::Plan &plan) {
  std::vector<uint64_t> sizes;
  for (const proto::Length &length : plan.shorter())
    sizes.push_back(length.size());
  if (!sizes.empty())
    sizes.push_back(plan.size());
  return sizes;
}

int sharedBuffers(const proto::Role &role) {
  const auto other = std::ranges::find_if(
      role.buffers(), [](const proto::Buffer &buffer) { return buffer.scope() != proto::Buffer::PLAN; });
  return int(other - role.buffers().begin());
}

std::string programOfSize(const std::string &program, const proto::Plan &plan, uint64_t size) {
  return size == plan.size() || plan.shorter_size() == 0 ? program : program + "@" + std::to_string(size);
}

bool isProgram(std::string_view name, std::string_view program) { return name.substr(0, name.find('@')) == program; }

proto::Plan planOfSize(const proto::Plan &plan, uint64_t size) {
  proto::Plan one = plan;
  one.clear_shorter();
  for (const proto::Length &length : plan.shorter()) {
    if (length.size() != size)
      continue;
    one.set_size(size);
    *one.mutable_inputs() = length.inputs();
    *one.mutable_reference() = length.reference();
    one.clear_pipeline();
    if (length.has_pipeline())
      *one.mutable_pipeline() = length.pipeline();
    for (int r = 0; r < one.roles_size(); ++r) {
      proto::Role &role = *one.mutable_roles(r);
      const proto::Role &own = length.roles(r);
      const int shared = sharedBuffers(role);
      role.mutable_buffers()->DeleteSubrange(shared, role.buffers_size() - shared);
      role.mutable_buffers()->MergeFrom(own.buffers());
      *role.mutable_events() = own.events();
      *role.mutable_routines() = own.routines();
      *role.mutable_programs() = own.programs();
    }
  }
  return one;
}

namespace {

class RoleNumbers {
public:
  explicit RoleNumbers(const Renumbering &numbers) : numbers_(numbers) {}

  void change(proto::Role &role) const {
    for (proto::Buffer &buffer : *role.mutable_buffers()) {
      if (!numbers_.arenas.empty())
        buffer.set_arena(numbers_.arenas[buffer.arena()]);
      if (buffer.has_variable() && !numbers_.variables.empty())
        buffer.set_variable(numbers_.variables[buffer.variable()]);
      if (buffer.has_next_of() && !numbers_.buffers.empty())
        buffer.set_next_of(numbers_.buffers[buffer.next_of()]);
      for (proto::Life &life : *buffer.mutable_lives()) {
        life.set_program(life.program() + numbers_.programs);
        life.set_birth_routine(life.birth_routine() + numbers_.routines);
        life.set_death_routine(life.death_routine() + numbers_.routines);
      }
    }
    for (proto::Routine &routine : *role.mutable_routines())
      for (proto::Command &command : *routine.mutable_commands())
        change(command);
    for (proto::Program &program : *role.mutable_programs()) {
      for (proto::Call &call : *program.mutable_calls())
        call.set_routine(call.routine() + numbers_.routines);
      for (proto::Metric &metric : *program.mutable_metrics())
        change(*metric.mutable_source());
      if (program.has_tail())
        change(*program.mutable_tail()->mutable_unless_one());
    }
  }

private:
  void change(proto::Operand &operand) const {
    if (!numbers_.buffers.empty())
      operand.set_buffer(numbers_.buffers[operand.buffer()]);
  }

  void change(google::protobuf::RepeatedPtrField<proto::Operand> &operands) const {
    for (proto::Operand &operand : operands)
      change(operand);
  }

  void change(proto::KernelCommand &kernel) const {
    if (kernel.has_code() && !numbers_.codes.empty())
      kernel.set_code(numbers_.codes[kernel.code()]);
    change(*kernel.mutable_operands());
  }

  void change(proto::Command &command) const {
    if (!numbers_.queues.empty())
      command.set_queue(numbers_.queues[command.queue()]);
    for (proto::Wait &wait : *command.mutable_waits())
      wait.set_event(wait.event() + numbers_.events);
    for (uint32_t &signal : *command.mutable_signals())
      signal += numbers_.events;
    for (uint32_t &op : *command.mutable_reference())
      op += numbers_.ops;
    switch (command.kind_case()) {
    case proto::Command::kKernel:
      return change(*command.mutable_kernel());
    case proto::Command::kFill:
      return change(*command.mutable_fill()->mutable_target());
    case proto::Command::kCopy:
      change(*command.mutable_copy()->mutable_source());
      return change(*command.mutable_copy()->mutable_target());
    case proto::Command::kFeed:
      command.mutable_feed()->set_input(command.feed().input() + numbers_.inputs);
      return change(*command.mutable_feed()->mutable_target());
    case proto::Command::kCollective:
      for (proto::CollectivePart &part : *command.mutable_collective()->mutable_parts()) {
        change(*part.mutable_source());
        change(*part.mutable_target());
        if (part.has_scratch())
          change(*part.mutable_scratch());
      }
      return;
    case proto::Command::kSend:
      return change(*command.mutable_send()->mutable_sources());
    case proto::Command::kReceive:
      return change(*command.mutable_receive()->mutable_targets());
    case proto::Command::KIND_NOT_SET:
      return;
    }
  }

  const Renumbering &numbers_;
};

void append(proto::Role &role, proto::Role own, const std::string &suffix, uint32_t inputs, uint32_t ops) {
  Renumbering numbers{.buffers = {},
                      .variables = {},
                      .codes = {},
                      .queues = {},
                      .arenas = {},
                      .events = uint32_t(role.events_size()),
                      .routines = uint32_t(role.routines_size()),
                      .programs = uint32_t(role.programs_size()),
                      .inputs = inputs,
                      .ops = ops};
  const int shared = sharedBuffers(role);
  for (int b = 0; b < shared + own.buffers_size(); ++b)
    numbers.buffers.push_back(uint32_t(b < shared ? b : role.buffers_size() + b - shared));
  renumber(own, numbers);
  for (proto::Program &program : *own.mutable_programs())
    program.set_name(program.name() + suffix);
  role.mutable_buffers()->MergeFrom(own.buffers());
  role.mutable_events()->MergeFrom(own.events());
  role.mutable_routines()->MergeFrom(own.routines());
  role.mutable_programs()->MergeFrom(own.programs());
}

void append(proto::Reference &reference, proto::Reference own, const std::string &suffix) {
  const auto values = uint32_t(reference.values_size());
  for (proto::ReferenceOp &op : *own.mutable_ops()) {
    op.set_function(op.function() + suffix);
    for (uint32_t &value : *op.mutable_operands())
      value += values;
    for (uint32_t &value : *op.mutable_results())
      value += values;
  }
  reference.MergeFrom(own);
}

} // namespace

void renumber(proto::Role &role, const Renumbering &numbers) { RoleNumbers(numbers).change(role); }

proto::Plan withProgramsOfAllSizes(const proto::Plan &plan) {
  proto::Plan all = plan;
  all.clear_shorter();
  for (const proto::Length &length : plan.shorter()) {
    all.add_shorter()->set_size(length.size());
    const std::string suffix = programOfSize("", plan, length.size());
    for (int r = 0; r < all.roles_size(); ++r)
      append(*all.mutable_roles(r), length.roles(r), suffix, uint32_t(all.inputs_size()),
             uint32_t(all.reference().ops_size()));
    append(*all.mutable_reference(), length.reference(), suffix);
    all.mutable_inputs()->MergeFrom(length.inputs());
  }
  return all;
}

namespace {

/// What ds-run cuts and pads: inputs of one name, type and rank, no longer than the plan's.
void checkInputs(const proto::Plan &plan, const proto::Length &length, const std::string &place) {
  if (length.inputs_size() != plan.inputs_size())
    refuse(place, "it has " + std::to_string(length.inputs_size()) + " inputs, but the plan has " +
                      std::to_string(plan.inputs_size()));
  for (int i = 0; i < plan.inputs_size(); ++i) {
    const proto::Input &own = length.inputs(i), &largest = plan.inputs(i);
    proto::Input alike = own;
    *alike.mutable_shape() = largest.shape();
    bool fits = own.shape_size() == largest.shape_size() && own.shape_size() > 0 && own.shape(0) == largest.shape(0);
    for (int d = 0; fits && d < own.shape_size(); ++d)
      fits = own.shape(d) <= largest.shape(d);
    if (!fits || alike.SerializeAsString() != largest.SerializeAsString())
      refuse(place, "input " + std::to_string(i) + " is not input " + largest.name() +
                        " of the plan with as many samples of at most its size");
  }
}

void checkRole(const proto::Role &own, const std::string &place) {
  if (!own.name().empty() || own.ranks_size() + own.arenas_size() + own.queues_size() > 0)
    refuse(place, "it has a name, ranks, arenas or queues of its own, but those are the plan's");
  for (int b = 0; b < own.buffers_size(); ++b)
    if (own.buffers(b).scope() == proto::Buffer::PLAN)
      refuse(place + ", " + describe("buffer", b, own.buffers(b).name()),
             "its scope is PLAN, but what lives for good is the plan's");
}

} // namespace

void checkLengths(const proto::Plan &plan) {
  checkName(plan.dimension(), "dimension");
  if (plan.shorter_size() == 0 && (!plan.dimension().empty() || plan.size() > 0))
    refuse("dimension", "it has a size, but no other; then the plan need not say it");
  constexpr int mostSizes = 64;
  if (plan.shorter_size() >= mostSizes)
    refuse("shorter",
           "there are " + std::to_string(plan.shorter_size() + 1) + " sizes, more than " + std::to_string(mostSizes));
  uint64_t before = 0;
  for (int i = 0; i < plan.shorter_size(); ++i) {
    const proto::Length &length = plan.shorter(i);
    const std::string place = describe("length", i, std::to_string(length.size()));
    if (plan.dimension().empty())
      refuse(place, "the plan does not say of which dimension");
    if (length.size() <= before || length.size() >= plan.size())
      refuse(place, "sizes must ascend from 1 to less than the plan's own, which is " + std::to_string(plan.size()));
    before = length.size();
    if (length.roles_size() != plan.roles_size())
      refuse(place, "it has " + std::to_string(length.roles_size()) + " roles, but the plan has " +
                        std::to_string(plan.roles_size()));
    checkInputs(plan, length, place);
    for (int r = 0; r < length.roles_size(); ++r)
      checkRole(length.roles(r), place + ", role " + std::to_string(r));
  }
  for (const proto::Role &role : plan.roles())
    for (int b = sharedBuffers(role); plan.shorter_size() > 0 && b < role.buffers_size(); ++b)
      if (role.buffers(b).scope() == proto::Buffer::PLAN)
        refuse(describe("buffer", b, role.buffers(b).name()),
               "its scope is PLAN, but one before it has another; in a plan for several sizes those stand first");
}

} // namespace ds::plan
