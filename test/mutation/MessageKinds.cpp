//===- MessageKinds.cpp - what stages tell each other ----------------------===//
#include "test/mutation/Kinds.h"

#include <algorithm>
#include <set>

namespace ds::mutation {

namespace {

bool isSend(const proto::Command &command) { return command.has_send(); }
bool isReceive(const proto::Command &command) { return command.has_receive(); }

std::string otherChannel(proto::Plan &plan, Random &random) {
  const auto place = random.pick(find(plan, isSend));
  if (!place || plan.channels_size() < 2)
    return "";
  proto::SendCommand &send = *at(plan, *place).mutable_send();
  send.set_channel((send.channel() + 1) % uint32_t(plan.channels_size()));
  return describe(plan, *place) + " on channel " + plan.channels(int(send.channel())).name();
}

/// Nobody waits any more for the message to be there.
std::string dropArrival(proto::Plan &plan, Random &random) {
  std::vector<Place> places = find(plan, isReceive);
  std::erase_if(places, [&](const Place &place) { return at(std::as_const(plan), place).signals().empty(); });
  const auto place = random.pick(places);
  if (!place)
    return "";
  const uint32_t event = at(std::as_const(plan), *place).signals(0);
  int dropped = 0;
  for (proto::Routine &routine : *plan.mutable_roles(place->role)->mutable_routines())
    for (proto::Command &command : *routine.mutable_commands())
      for (int w = command.waits_size(); w-- > 0;)
        if (command.waits(w).event() == event) {
          command.mutable_waits()->DeleteSubrange(w, 1);
          ++dropped;
        }
  return dropped == 0 ? "" : describe(plan, *place) + " is not waited for";
}

/// Commands that wait.
std::vector<Place> waiting(const proto::Plan &plan, const IsWanted &isWanted) {
  return findWhere(plan, isWanted, [&](const Place &place) { return at(plan, place).waits_size() > 0; });
}
std::string dropRoom(proto::Plan &plan, Random &random) { return dropWaits(plan, random, waiting(plan, isReceive)); }
std::string sendTooEarly(proto::Plan &plan, Random &random) { return dropWaits(plan, random, waiting(plan, isSend)); }

/// Two calls that receive take each other's micro-batch.
std::string swapReceives(proto::Plan &plan, Random &random) {
  std::vector<std::pair<proto::Call *, proto::Call *>> pairs;
  for (const Place &place : find(plan, isReceive)) {
    std::vector<proto::Call *> calls;
    for (proto::Call &call : *program(*plan.mutable_roles(place.role), "step")->mutable_calls())
      if (int(call.routine()) == place.routine)
        calls.push_back(&call);
    for (size_t i = 0; i + 1 < calls.size(); ++i)
      pairs.emplace_back(calls[i], calls[i + 1]);
  }
  const auto pair = random.pick(pairs);
  if (!pair)
    return "";
  const uint32_t first = pair->first->microbatch();
  pair->first->set_microbatch(pair->second->microbatch());
  pair->second->set_microbatch(first);
  return "messages of micro-batches " + std::to_string(first) + " and " + std::to_string(pair->first->microbatch()) +
         " taken for each other";
}

/// Both ends of a channel agree on half of what the receiver uses.
std::string halfMessage(proto::Plan &plan, Random &random) {
  std::vector<Place> places = find(plan, isReceive);
  std::erase_if(places, [&](const Place &place) {
    const proto::Operand &target = at(std::as_const(plan), place).receive().targets(0);
    return target.shape_size() == 0 || target.shape(target.shape_size() - 1) % 2 != 0;
  });
  const auto place = random.pick(places);
  if (!place)
    return "";
  const uint32_t channel = at(std::as_const(plan), *place).receive().channel();
  const auto halve = [](proto::Operand &operand) {
    const int last = operand.shape_size() - 1;
    operand.set_shape(last, operand.shape(last) / 2);
  };
  for (proto::Role &role : *plan.mutable_roles())
    for (proto::Routine &routine : *role.mutable_routines())
      for (proto::Command &command : *routine.mutable_commands()) {
        if (command.has_send() && command.send().channel() == channel)
          halve(*command.mutable_send()->mutable_sources(0));
        if (command.has_receive() && command.receive().channel() == channel)
          halve(*command.mutable_receive()->mutable_targets(0));
      }
  return "half of what goes over channel " + plan.channels(int(channel)).name();
}

std::string dropMessage(proto::Plan &plan, Random &random) {
  const auto place = random.pick(find(plan, isSend));
  if (!place)
    return "";
  const std::string text = describe(plan, *place) + " left out";
  const auto &queues = plan.roles(place->role).queues();
  const auto compute = std::ranges::find(queues, proto::Queue::COMPUTE, &proto::Queue::kind);
  makeIdle(plan, *place);
  at(plan, *place).set_queue(uint32_t(compute - queues.begin()));
  return text;
}

/// An operand lies in another buffer of the role, of as many bytes at least.
std::string elsewhere(proto::Plan &plan, Random &random, const IsWanted &isWanted) {
  std::vector<std::pair<Place, uint32_t>> choices;
  for (const Place &place : find(plan, isWanted)) {
    const proto::Operand &operand = *operandsOf(at(std::as_const(plan), place))[0];
    const auto &buffers = plan.roles(place.role).buffers();
    for (int b = 0; b < buffers.size(); ++b)
      if (uint32_t(b) != operand.buffer() && buffers[b].bytes() == bufferOf(plan, place, operand).bytes() &&
          buffers[b].scope() != proto::Buffer::PLAN)
        choices.emplace_back(place, uint32_t(b));
  }
  const auto choice = random.pick(choices);
  if (!choice)
    return "";
  operandsOf(at(plan, choice->first))[0]->set_buffer(choice->second);
  return describe(plan, choice->first) + " with " + plan.roles(choice->first.role).buffers(int(choice->second)).name();
}

std::string receiveElsewhere(proto::Plan &plan, Random &random) { return elsewhere(plan, random, isReceive); }
std::string sendAnother(proto::Plan &plan, Random &random) { return elsewhere(plan, random, isSend); }

/// In the update, what another stage has summed of a shared parameter's gradient is not taken.
std::string tieNotSummed(proto::Plan &plan, Random &random) {
  std::set<std::pair<int, uint32_t>> received; // by role and buffer
  for (const Place &place : find(plan, isReceive))
    for (const proto::Operand *operand : operandsOf(at(std::as_const(plan), place)))
      if (operand->shape_size() > 0)
        received.emplace(place.role, operand->buffer());
  std::vector<Place> places =
      find(plan, [](const proto::Command &command) { return isKernel(command, "elementwise"); });
  std::erase_if(places, [&](const Place &place) {
    return !isUpdate(plan, place) ||
           std::ranges::none_of(operandsOf(at(std::as_const(plan), place)), [&](const proto::Operand *operand) {
             return reads(*operand) && received.contains({place.role, operand->buffer()});
           });
  });
  return leaveOut(plan, random, places);
}

/// Whether other buffers that do not live always have bytes in common with this one.
bool isShared(const proto::Role &role, const proto::Buffer &buffer) {
  return std::ranges::any_of(role.buffers(), [&](const proto::Buffer &other) {
    return &other != &buffer && other.scope() != proto::Buffer::PLAN && other.arena() == buffer.arena() &&
           other.offset() < buffer.offset() + buffer.bytes() && buffer.offset() < other.offset() + other.bytes();
  });
}

/// What arrives once a step, where other values lay before, does not wait until these are done with.
std::string tieTooEarly(proto::Plan &plan, Random &random) {
  std::vector<Place> places = find(plan, isReceive);
  std::erase_if(places, [&](const Place &place) {
    const proto::Command &command = at(std::as_const(plan), place);
    const proto::Operand &target = command.receive().targets(0);
    return std::ranges::none_of(command.waits(), [](const proto::Wait &wait) { return wait.delay() == 0; }) ||
           !isShared(plan.roles(place.role), bufferOf(plan, place, target));
  });
  return dropWaits(plan, random, places);
}

} // namespace

std::vector<Kind> messageKinds() {
  return {{"message-to-another-stage", true, otherChannel},
          {"message-not-waited-for", true, dropArrival},
          {"receive-before-there-is-room", false, dropRoom},
          {"send-before-the-value", true, sendTooEarly},
          {"swap-messages", true, swapReceives},
          {"half-a-message", true, halfMessage},
          {"drop-message", true, dropMessage},
          {"receive-into-another-buffer", true, receiveElsewhere},
          {"send-another-value", false, sendAnother},
          {"tie-not-summed", true, tieNotSummed},
          {"tie-before-there-is-room", true, tieTooEarly}};
}

} // namespace ds::mutation
