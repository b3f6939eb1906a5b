//===- RankKinds.cpp - what ranks have in common ----------------------------===//
//
// A sum or a broadcast too many is refused where what it leaves is used (meaning) or lies at the end (coverage), axes
// exchanged by what sums gradients (meaning, coverage), a wrong slice by what lies there (value).
//
//===----------------------------------------------------------------------===//
#include "test/mutation/Kinds.h"

#include <algorithm>

namespace ds::mutation {

namespace {

using proto::CollectiveCommand;

/// The first collective of a role over ranks that have micro-batches: what others are made like.
const proto::Command *gradientSum(const proto::Plan &plan, int role) {
  for (const proto::Routine &routine : plan.roles(role).routines())
    for (const proto::Command &command : routine.commands())
      if (isCollective(command, CollectiveCommand::ALL_REDUCE) ||
          isCollective(command, CollectiveCommand::REDUCE_SCATTER))
        return &command;
  return nullptr;
}

/// A collective of one operand in place, over the ranks that `like` is over, on its queue.
proto::Command inPlace(const proto::Command &like, CollectiveCommand::Kind kind, const proto::Operand &operand) {
  proto::Command command;
  command.set_queue(like.queue());
  command.mutable_collective()->set_kind(kind);
  command.mutable_collective()->set_communicator(like.collective().communicator());
  proto::CollectivePart &part = *command.mutable_collective()->add_parts();
  *part.mutable_source() = operand;
  part.mutable_source()->set_access(proto::Operand::READ);
  *part.mutable_target() = operand;
  part.mutable_target()->set_access(proto::Operand::WRITE);
  return command;
}

/// What a sum receives into: a buffer of its own at the end of the arena, alive while the command runs.
proto::Operand scratchFor(proto::Plan &plan, const Place &place, const proto::Operand &like) {
  proto::Role &role = *plan.mutable_roles(place.role);
  const proto::Buffer old = role.buffers(int(like.buffer()));
  proto::Arena &arena = *role.mutable_arenas(int(old.arena()));
  proto::Operand scratch = like;
  scratch.set_buffer(uint32_t(role.buffers_size()));
  proto::Buffer &buffer = *role.add_buffers();
  buffer = old;
  const uint64_t alignment = plan.machine().alignment();
  buffer.set_offset((arena.bytes() + alignment - 1) / alignment * alignment);
  buffer.clear_lives();
  arena.set_bytes(buffer.offset() + buffer.bytes());
  for (int p = 0; p < role.programs_size(); ++p)
    if (role.programs(p).name() == "step") {
      proto::Life &life = *buffer.add_lives();
      life.set_program(uint32_t(p));
      life.set_birth_routine(uint32_t(place.routine));
      life.set_birth_command(uint32_t(place.command));
      life.set_death_routine(uint32_t(place.routine));
      life.set_death_command(uint32_t(place.command));
    }
  return scratch;
}

/// Behind an update, one of the things that it has changed is summed over the ranks.
std::string sumOfState(proto::Plan &plan, Random &random) {
  std::vector<Place> places = find(plan, isOptimizer);
  std::erase_if(places, [&](const Place &place) { return gradientSum(plan, place.role) == nullptr; });
  const auto place = random.pick(places);
  if (!place)
    return "";
  const auto &operands = at(std::as_const(plan), *place).kernel().operands();
  std::vector<proto::Operand> written;
  for (const proto::Operand &operand : operands)
    if (writes(operand))
      written.push_back(operand);
  const proto::Operand state = *random.pick(written);
  const std::string text =
      describe(plan, *place) + ": " + bufferOf(plan, *place, state).name() + " is summed over the ranks";
  const Place behind{place->role, place->routine, place->command + 1};
  const proto::Command like = *gradientSum(plan, place->role);
  insert(plan, behind, inPlace(like, CollectiveCommand::ALL_REDUCE, state));
  *at(plan, behind).mutable_collective()->mutable_parts(0)->mutable_scratch() =
      scratchFor(plan, behind, like.collective().parts(0).scratch());
  return text;
}

/// Behind a kernel of the forward, ranks take the first rank's activation.
std::string firstRanksActivation(proto::Plan &plan, Random &random) {
  std::vector<Place> places = findWhere(
      plan, [](const proto::Command &command) { return isKernel(command, "matmul"); },
      [&](const Place &place) {
        return plan.roles(place.role).routines(place.routine).phase() == proto::Routine::FORWARD &&
               gradientSum(plan, place.role) != nullptr;
      });
  const auto place = random.pick(places);
  if (!place)
    return "";
  proto::Operand result;
  for (const proto::Operand &operand : at(std::as_const(plan), *place).kernel().operands())
    if (operand.access() == proto::Operand::WRITE)
      result = operand;
  const std::string text = describe(plan, *place) + ": all ranks take the first one's result";
  insert(plan, {place->role, place->routine, place->command + 1},
         inPlace(*gradientSum(plan, place->role), CollectiveCommand::BROADCAST, result));
  return text;
}

/// Gradients are summed along the pipe, where samples are dealt out along another axis.
std::string exchangedAxes(proto::Plan &plan, Random &random) {
  auto &axes = *plan.mutable_world()->mutable_axes();
  const auto called = [&](const char *name) {
    return int(std::ranges::find(axes, name, &proto::Axis::name) - axes.begin());
  };
  const int pipe = called("pipe"), data = called("data");
  if (pipe == axes.size() || data == axes.size() || axes[pipe].size() != axes[data].size() || axes[pipe].size() == 1)
    return "";
  if (random.below(2) == 0) {
    const auto move = [&](auto &things) {
      for (auto &thing : things)
        for (proto::AxisPlacement &axis : *thing.mutable_placement()->mutable_axes())
          axis.set_axis(uint32_t(pipe));
    };
    move(*plan.mutable_inputs());
    move(*plan.mutable_variables());
    return "what varies along axis data varies along axis pipe";
  }
  for (proto::Communicator &communicator : *plan.mutable_communicators())
    if (communicator.axes_size() == 1 && int(communicator.axes(0)) == data)
      communicator.set_axes(0, uint32_t(pipe));
  return "communicators along axis data are along axis pipe";
}

/// Every rank sends, adds or measures the slice of the first one.
std::string firstRanksSlice(proto::Plan &plan, Random &random) {
  std::vector<std::pair<Place, size_t>> choices;
  for (const Place &place : find(plan, [](const proto::Command &command) {
         return command.has_send() || isKernel(command, "elementwise") || isKernel(command, "block_sum_squares");
       })) {
    const auto operands = operandsOf(at(std::as_const(plan), place));
    for (size_t i = 0; i < operands.size(); ++i)
      if (operands[i]->rank_stride() > 0 && reads(*operands[i]))
        choices.emplace_back(place, i);
  }
  const auto choice = random.pick(choices);
  if (!choice)
    return "";
  operandsOf(at(plan, choice->first))[choice->second]->set_rank_stride(0);
  return describe(plan, choice->first) + ", operand " + std::to_string(choice->second) + ": the first rank's slice";
}

} // namespace

std::vector<Kind> rankKinds() {
  return {{"sum-of-state", true, sumOfState},
          {"first-ranks-activation", true, firstRanksActivation},
          {"exchanged-axes", true, exchangedAxes},
          {"first-ranks-slice", true, firstRanksSlice}};
}

} // namespace ds::mutation
