//===- Edit.cpp - finding and changing parts of a plan ---------------------===//
#include "test/mutation/Edit.h"

#include "core/DType.h"

#include <algorithm>
#include <set>
#include <string_view>

namespace ds::mutation {

proto::Routine &routineAt(proto::Plan &plan, const Place &place) {
  return *plan.mutable_roles(place.role)->mutable_routines(place.routine);
}
proto::Command &at(proto::Plan &plan, const Place &place) {
  return *routineAt(plan, place).mutable_commands(place.command);
}
const proto::Command &at(const proto::Plan &plan, const Place &place) {
  return plan.roles(place.role).routines(place.routine).commands(place.command);
}

std::vector<Place> find(const proto::Plan &plan, const IsWanted &isWanted) {
  std::vector<Place> places;
  for (int role = 0; role < plan.roles_size(); ++role) {
    std::set<int> called;
    for (const proto::Program &program : plan.roles(role).programs())
      for (const proto::Call &call : program.calls())
        if (program.name() == "step")
          called.insert(int(call.routine()));
    for (int routine : called)
      for (int c = 0; c < plan.roles(role).routines(routine).commands_size(); ++c)
        if (isWanted(plan.roles(role).routines(routine).commands(c)))
          places.push_back({role, routine, c});
  }
  return places;
}

std::vector<Place> findWhere(const proto::Plan &plan, const IsWanted &isWanted,
                             const std::function<bool(const Place &)> &isPlace) {
  std::vector<Place> places = find(plan, isWanted);
  std::erase_if(places, [&](const Place &place) { return !isPlace(place); });
  return places;
}

std::vector<proto::Operand *> operandsOf(proto::Command &command) {
  std::vector<proto::Operand *> operands;
  if (command.has_kernel())
    for (proto::Operand &operand : *command.mutable_kernel()->mutable_operands())
      operands.push_back(&operand);
  if (command.has_fill())
    operands.push_back(command.mutable_fill()->mutable_target());
  if (command.has_copy())
    operands = {command.mutable_copy()->mutable_source(), command.mutable_copy()->mutable_target()};
  if (command.has_feed())
    operands.push_back(command.mutable_feed()->mutable_target());
  if (command.has_send())
    for (proto::Operand &operand : *command.mutable_send()->mutable_sources())
      operands.push_back(&operand);
  if (command.has_receive())
    for (proto::Operand &operand : *command.mutable_receive()->mutable_targets())
      operands.push_back(&operand);
  if (command.has_collective())
    for (proto::CollectivePart &part : *command.mutable_collective()->mutable_parts()) {
      operands.push_back(part.mutable_source());
      operands.push_back(part.mutable_target());
      if (part.has_scratch())
        operands.push_back(part.mutable_scratch());
    }
  return operands;
}

std::vector<const proto::Operand *> operandsOf(const proto::Command &command) {
  std::vector<const proto::Operand *> operands;
  for (proto::Operand *operand : operandsOf(const_cast<proto::Command &>(command))) // only looked at
    operands.push_back(operand);
  return operands;
}

bool reads(const proto::Operand &operand) {
  return operand.access() == proto::Operand::READ || operand.access() == proto::Operand::READ_WRITE;
}
bool writes(const proto::Operand &operand) {
  return operand.access() == proto::Operand::WRITE || operand.access() == proto::Operand::READ_WRITE;
}

uint64_t bytesOf(const proto::Operand &operand) {
  uint64_t bytes = uint64_t(byteSize(*dtypeFromNumber(operand.dtype())));
  for (int64_t dim : operand.shape())
    bytes *= uint64_t(dim);
  return bytes;
}

bool isKernel(const proto::Command &command, const char *name) {
  return command.has_kernel() && command.kernel().kernel() == name;
}
bool makesLossGradient(const proto::Command &command) {
  return isKernel(command, "cross_entropy_grad") || isKernel(command, "cross_entropy_with_grad");
}
bool isOptimizer(const proto::Command &command) {
  return keepsTwoMoments(command) || isKernel(command, "sgd") || isKernel(command, "adagrad") ||
         isKernel(command, "lion");
}
bool keepsTwoMoments(const proto::Command &command) { return isKernel(command, "adamw") || isKernel(command, "lamb"); }
bool isCollective(const proto::Command &command, proto::CollectiveCommand::Kind kind) {
  return command.has_collective() && command.collective().kind() == kind;
}

const proto::Buffer &bufferOf(const proto::Plan &plan, const Place &place, const proto::Operand &operand) {
  return plan.roles(place.role).buffers(int(operand.buffer()));
}

bool touchesGradients(const proto::Plan &plan, const Place &place) {
  return std::ranges::any_of(operandsOf(at(plan, place)), [&](const proto::Operand *operand) {
    return bufferOf(plan, place, *operand).category() == proto::Buffer::GRADIENTS;
  });
}

proto::Program *program(proto::Role &role, const char *name) {
  for (proto::Program &one : *role.mutable_programs())
    if (one.name() == name)
      return &one;
  return nullptr;
}

proto::Attribute *attribute(proto::Command &command, const char *name) {
  for (proto::Attribute &one : *command.mutable_kernel()->mutable_attributes())
    if (one.name() == name)
      return &one;
  return nullptr;
}

bool isUpdate(const proto::Plan &plan, const Place &place) {
  for (const proto::Program &program : plan.roles(place.role).programs())
    if (program.name() == "step")
      return int(program.calls(program.calls_size() - 1).routine()) == place.routine;
  return false;
}

void makeIdle(proto::Plan &plan, const Place &place) {
  const proto::Role &role = plan.roles(place.role);
  uint32_t buffer = 0; // any that outlives the step and is no weight
  for (int b = 0; b < role.buffers_size(); ++b)
    if (role.buffers(b).scope() == proto::Buffer::PLAN && role.buffers(b).category() == proto::Buffer::OPTIMIZER)
      buffer = uint32_t(b);
  proto::Operand &target = *at(plan, place).mutable_fill()->mutable_target();
  target.Clear();
  target.set_buffer(buffer);
  target.set_dtype(proto::DTYPE_U8);
  target.add_shape(0);
  target.set_access(proto::Operand::WRITE);
  at(plan, place).clear_reference();
}

std::string leaveOut(proto::Plan &plan, Random &random, const std::vector<Place> &places) {
  const auto place = random.pick(places);
  if (!place)
    return "";
  const std::string text = describe(plan, *place) + " left out";
  makeIdle(plan, *place);
  return text;
}

std::string dropWaits(proto::Plan &plan, Random &random, const std::vector<Place> &places) {
  const auto place = random.pick(places);
  if (!place)
    return "";
  at(plan, *place).clear_waits();
  return describe(plan, *place) + " does not wait";
}

void insert(proto::Plan &plan, const Place &place, const proto::Command &command) {
  proto::Routine &routine = routineAt(plan, place);
  const proto::Command copy = command; // it may be one of these
  *routine.add_commands() = copy;
  for (int c = routine.commands_size() - 1; c > place.command; --c)
    routine.mutable_commands()->SwapElements(c, c - 1);
  for (proto::Buffer &buffer : *plan.mutable_roles(place.role)->mutable_buffers())
    for (proto::Life &life : *buffer.mutable_lives()) {
      if (int(life.birth_routine()) == place.routine && int(life.birth_command()) > place.command)
        life.set_birth_command(life.birth_command() + 1);
      if (int(life.death_routine()) == place.routine && int(life.death_command()) >= place.command)
        life.set_death_command(life.death_command() + 1);
    }
}

std::optional<int> splitRole(proto::Plan &plan) {
  proto::Role &first = *plan.mutable_roles(0);
  if (plan.roles_size() != 1 || first.ranks_size() != 2 || first.ranks(0) == first.ranks(1))
    return std::nullopt;
  const uint32_t last = first.ranks(1);
  proto::Role &second = *plan.add_roles();
  second = plan.roles(0);
  second.set_name("last");
  second.set_ranks(0, last);
  plan.mutable_roles(0)->set_ranks(1, last - 1);
  return 1;
}

std::string describe(const proto::Plan &plan, const Place &place) {
  const proto::Command &command = at(plan, place);
  const std::string what = command.has_kernel()       ? command.kernel().kernel()
                           : command.has_collective() ? proto::CollectiveCommand::Kind_Name(command.collective().kind())
                           : command.has_fill()       ? "fill"
                           : command.has_feed()       ? "feed"
                           : command.has_send()       ? "send"
                           : command.has_receive()    ? "receive"
                                                      : "copy";
  return (plan.roles_size() > 1 ? "role " + plan.roles(place.role).name() + ", " : "") + "routine " +
         plan.roles(place.role).routines(place.routine).name() + ", command " + std::to_string(place.command) + " (" +
         what + ")";
}

} // namespace ds::mutation
