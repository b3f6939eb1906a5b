//===- Meetings.cpp - where roles wait for each other ------------------------===//
#include "compiler/check/Meetings.h"

#include "compiler/check/Refusal.h"

namespace ds::check {

namespace {

uint32_t channelOf(const proto::Command &command) {
  return command.has_send() ? command.send().channel() : command.receive().channel();
}

std::string sizes(const google::protobuf::RepeatedPtrField<proto::Operand> &operands) {
  std::string text;
  for (const proto::Operand &operand : operands) {
    text += (text.empty() ? "" : " and ") + proto::DType_Name(operand.dtype()) + " [";
    for (int i = 0; i < operand.shape_size(); ++i)
      text += (i > 0 ? ", " : "") + std::to_string(operand.shape(i));
    text += "]";
  }
  return text;
}

} // namespace

Meetings::Meetings(const proto::Plan &plan, const std::string &program)
    : plan_(plan), program_(program), roles_(plan) {}

Meetings::Place Meetings::placeOf(const Instance &instance) {
  const proto::Command &command = *instance.command;
  return command.has_collective() ? Place(false, command.collective().communicator()) : Place(true, channelOf(command));
}

std::string Meetings::nameOf(const Place &place) const {
  return place.first ? "channel " + plan_.channels(int(place.second)).name()
                     : "communicator " + plan_.communicators(int(place.second)).name();
}

Meetings::End &Meetings::endOf(uint32_t role, const Place &place) {
  const auto [it, isNew] = ends_.try_emplace({place, role});
  if (!isNew)
    return it->second;
  const plan::RolePairs pairs = place.first ? roles_.onChannel(place.second) : roles_.inCommunicator(place.second);
  for (const auto &[a, b] : pairs)
    if (uint32_t(a) == role || uint32_t(b) == role)
      it->second.others.push_back(uint32_t(a) == role ? uint32_t(b) : uint32_t(a));
  return it->second;
}

const std::string &Meetings::agreement(const proto::Command &command) {
  const auto [it, isNew] = agreements_.try_emplace(&command);
  if (!isNew)
    return it->second;
  if (!command.has_collective())
    return it->second = sizes(command.has_send() ? command.send().sources() : command.receive().targets());
  it->second = proto::CollectiveCommand::Kind_Name(command.collective().kind());
  for (const proto::CollectivePart &part : command.collective().parts()) {
    int64_t count = 1;
    for (int64_t dim : part.source().shape())
      count *= dim;
    it->second += " of " + std::to_string(count) + " " + proto::DType_Name(part.source().dtype());
  }
  return it->second;
}

void Meetings::requireOneQueue(uint32_t role, const Instance &instance, const End &end) const {
  if (end.came.empty() || end.came.back().queue == instance.queue)
    return;
  const auto queue = [&](const Instance &one) { return plan_.roles(int(role)).queues(int(one.queue)).name(); };
  throw Refusal{"progress", text(role, instance) + ": " + nameOf(placeOf(instance)) + " is entered by queue " +
                                queue(instance) + " and by queue " + queue(end.came.back()) + ", so the order of its " +
                                (instance.command->has_collective() ? "collectives" : "messages") +
                                " depends on timing"};
}

void Meetings::requireEqual(uint32_t role, const Instance &own, uint32_t other, const Instance &theirs) {
  const std::string &mine = agreement(*own.command), &yours = agreement(*theirs.command);
  const auto verb = [](const Instance &instance) {
    return instance.command->has_collective() ? " enters " : instance.command->has_send() ? " sends " : " receives ";
  };
  const bool twoSends = !own.command->has_collective() && own.command->has_send() == theirs.command->has_send();
  if (mine != yours || twoSends)
    throw Refusal{"progress", text(role, own) + verb(own) + mine + " on " + nameOf(placeOf(own)) + ", but " +
                                  text(other, theirs) + verb(theirs) + yours};
}

bool Meetings::goOn(uint32_t role, const Instance &instance, bool isNew) {
  const Place place = placeOf(instance);
  End &end = endOf(role, place);
  requireOneQueue(role, instance, end);
  if (isNew)
    end.came.push_back(instance);
  const bool receives = instance.command->has_receive();
  for (uint32_t other : end.others) {
    const End &theirs = endOf(other, place);
    if (theirs.came.size() <= end.wentOn)
      return false;
    requireEqual(role, end.came[end.wentOn], other, theirs.came[end.wentOn]);
    if (receives && theirs.wentOn <= end.wentOn)
      return false;
  }
  if (place.first && end.others.empty())
    throw Refusal{"progress", text(role, instance) + ": no other role stands at the other end of " + nameOf(place)};
  ++end.wentOn;
  return true;
}

void Meetings::sent(uint32_t role, const Instance &instance, size_t step) {
  endOf(role, placeOf(instance)).steps.push_back(step);
}

Step Meetings::sender(uint32_t role, const Instance &instance) const {
  const Place place = placeOf(instance);
  const End &end = ends_.at({place, role});
  const uint32_t other = end.others.front(); // of several, all send the same
  return {other, ends_.at({place, other}).steps[end.wentOn - 1]};
}

std::map<uint32_t, Instance> Meetings::others(uint32_t role, const Instance &instance) const {
  const Place place = placeOf(instance);
  const End &end = ends_.at({place, role});
  std::map<uint32_t, Instance> others;
  for (uint32_t other : end.others)
    others[other] = ends_.at({place, other}).came[end.wentOn - 1];
  return others;
}

std::string Meetings::absenceAt(const Instance &instance) const {
  const auto known = agreements_.find(instance.command);
  const std::string what = known == agreements_.end() ? "" : known->second;
  const std::string name = nameOf(placeOf(instance));
  return instance.command->has_collective() ? "the other ranks of " + name + ", which do not come to this " + what
                                            : "the other end of " + name + ", which does not come to " +
                                                  (instance.command->has_send() ? "receive" : "send") + " this message";
}

} // namespace ds::check
