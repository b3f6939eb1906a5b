//===- EndKinds.cpp - what a run leaves behind ------------------------------===//
//
// The rule of ends (coverage) refuses all of them but a slot on state, which the rule of memory does, and an
// evaluation's metric, which the rule of meaning does.
//
//===----------------------------------------------------------------------===//
#include "test/mutation/Kinds.h"

#include <algorithm>
#include <array>
#include <set>

namespace ds::mutation {

namespace {

/// A fill of a whole buffer, on the queue of `like`.
proto::Command fillOf(const proto::Role &role, uint32_t buffer, uint32_t queue) {
  proto::Command command;
  command.set_queue(queue);
  proto::Operand &target = *command.mutable_fill()->mutable_target();
  target.set_buffer(buffer);
  target.set_dtype(proto::DTYPE_U8);
  target.add_shape(int64_t(role.buffers(int(buffer)).bytes()));
  target.set_access(proto::Operand::WRITE);
  return command;
}

/// Adds a fill of one of the buffers to the last routine that a program calls, behind its last command.
std::string fillAtEnd(proto::Plan &plan, Random &random, const char *name,
                      const std::vector<proto::Variable::Kind> &kinds) {
  std::vector<std::pair<int, uint32_t>> choices; // role, buffer
  for (int r = 0; r < plan.roles_size(); ++r)
    for (int b = 0; b < plan.roles(r).buffers_size(); ++b) {
      const proto::Buffer &buffer = plan.roles(r).buffers(b);
      const proto::Variable *variable =
          buffer.has_variable() ? &plan.variables(int(buffer.variable()))
          : buffer.has_bucket() ? &plan.variables(int(plan.buckets(int(buffer.bucket())).members(0).variable()))
                                : nullptr;
      const bool isZero = variable && variable->kind() == proto::Variable::CONSTANT && variable->source().fill() == 0 &&
                          variable->source().literal().find_first_not_of('\0') == std::string::npos;
      if (variable && !isZero && std::ranges::count(kinds, variable->kind()) > 0 &&
          program(*plan.mutable_roles(r), name) != nullptr)
        choices.emplace_back(r, uint32_t(b));
    }
  const auto choice = random.pick(choices);
  if (!choice)
    return "";
  proto::Role &role = *plan.mutable_roles(choice->first);
  const proto::Program &last = *program(role, name);
  proto::Routine &routine = *role.mutable_routines(int(last.calls(last.calls_size() - 1).routine()));
  uint32_t queue = 0;
  for (const proto::Command &command : routine.commands())
    if (command.has_kernel())
      queue = command.queue();
  *routine.add_commands() = fillOf(role, choice->second, queue);
  return "program " + std::string(name) + " zeroes " + role.buffers(int(choice->second)).name() + " at its end";
}

std::string fillMoment(proto::Plan &plan, Random &random) {
  return fillAtEnd(plan, random, "step", {proto::Variable::OPTIMIZER});
}
std::string fillConstant(proto::Plan &plan, Random &random) {
  return fillAtEnd(plan, random, "step", {proto::Variable::CONSTANT, proto::Variable::BUFFER});
}
std::string fillInEvaluation(proto::Plan &plan, Random &random) {
  return fillAtEnd(
      plan, random, "evaluate",
      {proto::Variable::PARAMETER, proto::Variable::OPTIMIZER, proto::Variable::BUFFER, proto::Variable::CONSTANT});
}

/// A gradient that is not said to be one of a parameter, and no update by it.
std::string forgottenGradient(proto::Plan &plan, Random &random) {
  const auto place = random.pick(find(plan, isOptimizer));
  if (!place)
    return "";
  const proto::Buffer &buffer = bufferOf(plan, *place, at(std::as_const(plan), *place).kernel().operands(0));
  if (!buffer.has_variable() && !buffer.has_bucket())
    return ""; // a copy of the parameter
  std::set<uint32_t> parameters;
  if (buffer.has_variable())
    parameters.insert(buffer.variable());
  else
    for (const proto::BucketMember &member : plan.buckets(int(buffer.bucket())).members())
      parameters.insert(member.variable());
  for (proto::Variable &variable : *plan.mutable_variables())
    if (variable.kind() == proto::Variable::GRADIENT && parameters.contains(variable.of())) {
      variable.clear_of();
      variable.set_name(variable.name() + "::old");
    }
  const std::string text = describe(plan, *place) + " left out, with its gradients renamed";
  makeIdle(plan, *place);
  return text;
}

/// The last slot of a buffer lies where state does.
std::string slotOnState(proto::Plan &plan, Random &random) {
  std::vector<std::array<int, 3>> choices; // role, buffer with slots, state
  for (int r = 0; r < plan.roles_size(); ++r)
    for (int b = 0; b < plan.roles(r).buffers_size(); ++b)
      for (int s = 0; s < plan.roles(r).buffers_size(); ++s) {
        const proto::Buffer &slots = plan.roles(r).buffers(b), &state = plan.roles(r).buffers(s);
        if (slots.slots() > 1 && state.scope() == proto::Buffer::PLAN && state.arena() == slots.arena() &&
            state.category() == proto::Buffer::OPTIMIZER && state.bytes() >= slots.bytes() && slots.bytes() > 0)
          choices.push_back({r, b, s});
      }
  const auto choice = random.pick(choices);
  if (!choice)
    return "";
  proto::Role &role = *plan.mutable_roles((*choice)[0]);
  proto::Buffer &slots = *role.mutable_buffers((*choice)[1]);
  const proto::Buffer &state = role.buffers((*choice)[2]);
  slots.set_slot_offsets(slots.slot_offsets_size() - 1, state.offset());
  return "the last slot of " + slots.name() + " lies on " + state.name();
}

/// An evaluation's metric is the first element of some weight.
std::string otherScalar(proto::Plan &plan, Random &random) {
  proto::Role &role = *plan.mutable_roles(0);
  proto::Program *evaluate = program(role, "evaluate");
  if (!evaluate || evaluate->metrics_size() == 0)
    return "";
  proto::Operand &source = *evaluate->mutable_metrics(0)->mutable_source();
  std::vector<uint32_t> weights;
  for (int b = 0; b < role.buffers_size(); ++b)
    if (const proto::Buffer &buffer = role.buffers(b); buffer.category() == proto::Buffer::WEIGHTS)
      weights.push_back(uint32_t(b));
  const auto weight = random.pick(weights);
  if (!weight)
    return "";
  source.set_buffer(*weight);
  source.set_byte_offset(0);
  return "an evaluation's metric is read from " + role.buffers(int(*weight)).name();
}

} // namespace

std::vector<Kind> endKinds() {
  return {{"zeroed-state", true, fillMoment},
          {"zeroed-constant", true, fillConstant},
          {"zeroed-in-evaluation", true, fillInEvaluation},
          {"forgotten-gradient", true, forgottenGradient},
          {"slot-on-state", true, slotOnState},
          {"other-evaluation-metric", true, otherScalar}};
}

} // namespace ds::mutation
