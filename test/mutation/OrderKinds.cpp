//===- OrderKinds.cpp - queues, events, collectives, calls -----------------===//
#include "test/mutation/Kinds.h"

#include <algorithm>

namespace ds::mutation {

namespace {

bool anyCollective(const proto::Command &command) { return command.has_collective(); }

/// Plants in the second of two roles, so that ranks disagree.
template <typename Plant> std::string onOneRank(proto::Plan &plan, Plant plant) {
  const std::optional<int> role = splitRole(plan);
  return role ? plant(*role) : "";
}

std::vector<Place> findIn(const proto::Plan &plan, int role, const IsWanted &isWanted) {
  std::vector<Place> places = find(plan, isWanted);
  std::erase_if(places, [&](const Place &place) { return place.role != role; });
  return places;
}

std::string splitRoles(proto::Plan &plan, Random &) { return splitRole(plan) ? "two roles that run the same" : ""; }

bool sameOnTheWire(const proto::Command &a, const proto::Command &b) {
  if (a.collective().kind() != b.collective().kind() || a.collective().parts_size() != b.collective().parts_size())
    return false;
  for (int i = 0; i < a.collective().parts_size(); ++i)
    if (bytesOf(a.collective().parts(i).source()) != bytesOf(b.collective().parts(i).source()))
      return false;
  return true;
}

std::string swapCollectives(proto::Plan &plan, Random &random) {
  return onOneRank(plan, [&](int role) -> std::string {
    std::vector<std::pair<Place, Place>> pairs;
    const std::vector<Place> places = findIn(plan, role, anyCollective);
    for (size_t i = 0; i + 1 < places.size(); ++i)
      if (places[i].routine == places[i + 1].routine && !sameOnTheWire(at(plan, places[i]), at(plan, places[i + 1])))
        pairs.emplace_back(places[i], places[i + 1]);
    const auto pair = random.pick(pairs);
    if (!pair)
      return "";
    const std::string text = describe(plan, pair->first) + " and " + describe(plan, pair->second) + " swapped";
    at(plan, pair->first).mutable_collective()->Swap(at(plan, pair->second).mutable_collective());
    return text;
  });
}

std::string leaveOutCollective(proto::Plan &plan, Random &random) {
  return onOneRank(plan, [&](int role) -> std::string {
    const auto place = random.pick(findIn(plan, role, anyCollective));
    if (!place)
      return "";
    const std::string text = describe(plan, *place) + " left out";
    makeIdle(plan, *place);
    return text;
  });
}

std::string otherSize(proto::Plan &plan, Random &random) {
  return onOneRank(plan, [&](int role) -> std::string {
    const auto place = random.pick(findIn(plan, role, [](const proto::Command &command) {
      return isCollective(command, proto::CollectiveCommand::ALL_GATHER) &&
             command.collective().parts(0).source().shape_size() == 1 &&
             command.collective().parts(0).source().shape(0) > 1;
    }));
    if (!place)
      return "";
    proto::CollectivePart &part = *at(plan, *place).mutable_collective()->mutable_parts(0);
    const int64_t half = part.source().shape(0) / 2, ranks = part.target().shape(0) / part.source().shape(0);
    part.mutable_source()->set_shape(0, half);
    part.mutable_target()->set_shape(0, half * ranks);
    return describe(plan, *place) + " of half the elements";
  });
}

std::string otherCommunicator(proto::Plan &plan, Random &random) {
  const auto place = random.pick(find(
      plan, [](const proto::Command &command) { return isCollective(command, proto::CollectiveCommand::ALL_REDUCE); }));
  if (!place)
    return "";
  proto::Communicator &alone = *plan.add_communicators(); // along the pipe, where a rank is alone
  alone.set_name("alone");
  alone.add_axes(0);
  at(plan, *place).mutable_collective()->set_communicator(uint32_t(plan.communicators_size()) - 1);
  return describe(plan, *place) + " over ranks that are alone";
}

std::string dropWait(proto::Plan &plan, Random &random) {
  const auto place = random.pick(find(plan, [](const proto::Command &command) { return command.waits_size() > 0; }));
  if (!place)
    return "";
  auto &waits = *at(plan, *place).mutable_waits();
  waits.DeleteSubrange(int(random.below(size_t(waits.size()))), 1);
  return describe(plan, *place) + " without a wait";
}

std::string dropSignal(proto::Plan &plan, Random &random) {
  const auto place = random.pick(find(plan, [](const proto::Command &command) { return command.signals_size() > 0; }));
  if (!place)
    return "";
  auto &signals = *at(plan, *place).mutable_signals();
  const auto drop = signals.begin() + int(random.below(size_t(signals.size())));
  signals.erase(drop);
  return describe(plan, *place) + " without a signal";
}

std::string otherEvent(proto::Plan &plan, Random &random) {
  const auto place = random.pick(find(plan, [](const proto::Command &command) { return command.waits_size() > 0; }));
  if (!place || plan.roles(place->role).events_size() < 2)
    return "";
  proto::Wait &wait = *at(plan, *place).mutable_waits(0);
  wait.set_event((wait.event() + 1) % uint32_t(plan.roles(place->role).events_size()));
  return describe(plan, *place) + " waits for event " + plan.roles(place->role).events(int(wait.event())).name();
}

std::string waitForOlder(proto::Plan &plan, Random &random) {
  const auto place = random.pick(find(plan, [](const proto::Command &command) { return command.waits_size() > 0; }));
  if (!place)
    return "";
  proto::Wait &wait = *at(plan, *place).mutable_waits(0);
  wait.set_delay(wait.delay() + 1);
  return describe(plan, *place) + " waits for an older micro-batch";
}

std::string earlySignal(proto::Plan &plan, Random &random) {
  const auto place = random.pick(find(plan, [](const proto::Command &command) { return command.signals_size() > 0; }));
  if (!place)
    return "";
  const uint32_t queue = at(plan, *place).queue();
  Place before = *place;
  while (before.command > 0) {
    --before.command;
    if (at(plan, before).queue() != queue)
      continue;
    const auto signals = at(plan, *place).signals();
    at(plan, *place).clear_signals();
    at(plan, before).mutable_signals()->MergeFrom(signals);
    return describe(plan, before) + " signals what " + describe(plan, *place) + " should";
  }
  return "";
}

std::string cyclicWait(proto::Plan &plan, Random &random) {
  const auto place = random.pick(find(plan, [](const proto::Command &command) { return command.signals_size() > 0; }));
  if (!place)
    return "";
  proto::Wait &wait = *at(plan, *place).add_waits();
  wait.set_event(at(plan, *place).signals(0));
  return describe(plan, *place) + " waits for itself";
}

std::string otherQueue(proto::Plan &plan, Random &random) {
  std::vector<Place> places = find(plan, [](const proto::Command &) { return true; });
  std::erase_if(places, [&](const Place &place) { return plan.roles(place.role).queues_size() < 2; });
  const auto place = random.pick(places);
  if (!place)
    return "";
  proto::Command &command = at(plan, *place);
  command.set_queue((command.queue() + 1) % uint32_t(plan.roles(place->role).queues_size()));
  return describe(plan, *place) + " on queue " + plan.roles(place->role).queues(int(command.queue())).name();
}

/// Two commands side by side, the second of which reads what only the first has written.
std::string useBeforeWrite(proto::Plan &plan, Random &random) {
  std::vector<Place> pairs = find(plan, [](const proto::Command &command) { return command.has_kernel(); });
  std::erase_if(pairs, [&](const Place &place) {
    if (place.command + 1 >= plan.roles(place.role).routines(place.routine).commands_size())
      return true;
    const proto::Command &next = at(plan, {place.role, place.routine, place.command + 1});
    if (!next.has_kernel() || next.queue() != at(plan, place).queue())
      return true;
    for (const proto::Operand *written : operandsOf(at(plan, place)))
      for (const proto::Operand *read : operandsOf(next))
        if (written->access() == proto::Operand::WRITE && reads(*read) && written->buffer() == read->buffer() &&
            bufferOf(plan, place, *read).scope() == proto::Buffer::CALL)
          return false;
    return true;
  });
  const auto place = random.pick(pairs);
  if (!place)
    return "";
  const std::string text = describe(plan, *place) + " after the command that reads its result";
  routineAt(plan, *place).mutable_commands()->SwapElements(place->command, place->command + 1);
  return text;
}

//===-- calls -------------------------------------------------------------------===//

proto::Program &step(proto::Plan &plan) { return *program(*plan.mutable_roles(0), "step"); }

/// Calls of the program `step` of routines that compute gradients.
std::vector<int> backwardCalls(proto::Plan &plan) {
  std::vector<int> calls;
  const auto &all = step(plan).calls();
  const int update = int(all[all.size() - 1].routine());
  for (int c = 0; c < all.size(); ++c) {
    const int routine = int(all[c].routine());
    const auto &commands = plan.roles(0).routines(routine).commands();
    if (routine != update && std::ranges::any_of(commands, makesLossGradient))
      calls.push_back(c);
  }
  return calls;
}

std::string callText(const proto::Plan &plan, const proto::Call &call) {
  return "call of " + plan.roles(0).routines(int(call.routine())).name() + " for micro-batch " +
         std::to_string(call.microbatch());
}

std::string otherMicrobatch(proto::Plan &plan, Random &random) {
  const auto call = random.pick(backwardCalls(plan));
  if (!call || plan.training().accumulation_steps() < 2)
    return "";
  proto::Call &changed = *step(plan).mutable_calls(*call);
  const std::string text = callText(plan, changed) + " is for another";
  changed.set_microbatch((changed.microbatch() + 1) % uint32_t(plan.training().accumulation_steps()));
  return text;
}

std::string dropCall(proto::Plan &plan, Random &random) {
  const auto call = random.pick(backwardCalls(plan));
  if (!call)
    return "";
  const std::string text = callText(plan, step(plan).calls(*call)) + " left out";
  step(plan).mutable_calls()->DeleteSubrange(*call, 1);
  return text;
}

std::string doubleCall(proto::Plan &plan, Random &random) {
  const auto call = random.pick(backwardCalls(plan));
  if (!call)
    return "";
  const proto::Call again = step(plan).calls(*call);
  auto &calls = *step(plan).mutable_calls();
  *calls.Add() = again;
  for (int c = calls.size() - 1; c > *call + 1; --c)
    calls.SwapElements(c, c - 1);
  return callText(plan, again) + " twice";
}

std::string updateTooEarly(proto::Plan &plan, Random &) {
  auto &calls = *step(plan).mutable_calls();
  const std::vector<int> backward = backwardCalls(plan);
  if (backward.empty())
    return "";
  calls.SwapElements(calls.size() - 1, backward.back());
  return "the update before the last backward";
}

std::string evaluationUpdates(proto::Plan &plan, Random &) {
  proto::Program *evaluate = program(*plan.mutable_roles(0), "evaluate");
  if (!evaluate || plan.roles_size() > 1)
    return "";
  const proto::Call update = step(plan).calls(step(plan).calls_size() - 1);
  *evaluate->add_calls() = update;
  evaluate->mutable_calls(evaluate->calls_size() - 1)->set_microbatch(0);
  return "evaluate calls the update";
}

} // namespace

std::vector<Kind> orderKinds() {
  return {{"split-roles", false, splitRoles},
          {"swap-collectives", true, swapCollectives},
          {"collective-left-out-on-one-rank", true, leaveOutCollective},
          {"collective-of-another-size", true, otherSize},
          {"other-communicator", true, otherCommunicator},
          {"drop-wait", false, dropWait},
          {"drop-signal", false, dropSignal},
          {"wait-for-another-event", false, otherEvent},
          {"wait-for-an-older-microbatch", false, waitForOlder},
          {"early-signal", false, earlySignal},
          {"cyclic-wait", true, cyclicWait},
          {"other-queue", false, otherQueue},
          {"use-before-write", true, useBeforeWrite},
          {"other-microbatch", true, otherMicrobatch},
          {"drop-call", true, dropCall},
          {"double-call", true, doubleCall},
          {"update-too-early", true, updateTooEarly},
          {"evaluation-updates", true, evaluationUpdates}};
}

} // namespace ds::mutation
