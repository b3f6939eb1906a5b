//===- Rendezvous.cpp - collectives and messages of several roles match ---===//
#include "compiler/check/schedule/Rendezvous.h"

#include "compiler/check/schedule/Refusal.h"

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

const char *verbOf(const proto::Command &command) {
  return command.has_collective() ? "enters" : command.has_send() ? "sends" : "receives";
}

} // namespace

Rendezvous::Point Rendezvous::pointOf(const Instance &instance) {
  const proto::Command &command = *instance.command;
  return command.has_collective() ? Point{false, command.collective().communicator()} : Point{true, channelOf(command)};
}

std::string Rendezvous::nameOf(const Point &point) const {
  return point.isChannel ? "channel " + plan_.channels(int(point.index)).name()
                         : "communicator " + plan_.communicators(int(point.index)).name();
}

Rendezvous::End &Rendezvous::endOf(uint32_t role, const Point &point) {
  const auto [it, isNew] = ends_.try_emplace({point, role});
  if (!isNew)
    return it->second;
  const plan::RolePairs &pairs = point.isChannel ? peers_.onChannel(point.index) : peers_.inCommunicator(point.index);
  for (const auto &[a, b] : pairs)
    if (a != b && (uint32_t(a) == role || uint32_t(b) == role))
      it->second.others.push_back(uint32_t(a) == role ? uint32_t(b) : uint32_t(a));
  return it->second;
}

const std::string &Rendezvous::agreement(const proto::Command &command) {
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

void Rendezvous::requireOneQueue(const Instance &instance, const End &end) const {
  if (end.came.empty() || end.came.back().queue == instance.queue)
    return;
  const auto queue = [&](const Instance &one) { return plan_.roles(int(one.role)).queues(int(one.queue)).name(); };
  throw Refusal{"progress",
                text(instance) + ": " + nameOf(pointOf(instance)) + " is entered by queue " + queue(instance) +
                    " and by queue " + queue(end.came.back()) + ", so the order of its " +
                    (instance.command->has_collective() ? "collectives" : "messages") + " depends on timing",
                text(end.came.back()) + " enters it on the other queue"};
}

void Rendezvous::requireEqual(const Instance &own, const Instance &theirs) {
  const std::string &mine = agreement(*own.command), &yours = agreement(*theirs.command);
  const bool twoSends = !own.command->has_collective() && own.command->has_send() == theirs.command->has_send();
  if (mine != yours || twoSends)
    throw Refusal{"progress",
                  text(own) + " " + verbOf(*own.command) + " " + mine + " on " + nameOf(pointOf(own)) + ", but role " +
                      plan_.roles(int(theirs.role)).name() + " " + verbOf(*theirs.command) + " " + yours,
                  text(theirs) + " " + verbOf(*theirs.command) + " that"};
}

void Rendezvous::arrived(const Instance &instance) {
  const Point point = pointOf(instance);
  End &end = endOf(instance.role, point);
  requireOneQueue(instance, end);
  if (point.isChannel && end.others.empty())
    throw Refusal{"progress", text(instance) + ": no other role stands at the other end of " + nameOf(point), ""};
  const size_t number = end.came.size();
  end.came.push_back(instance);
  for (uint32_t other : end.others)
    if (const End &theirs = endOf(other, point); theirs.came.size() > number)
      requireEqual(instance, theirs.came[number]);
}

void Rendezvous::executed(const Instance &instance, const Step &step) {
  endOf(instance.role, pointOf(instance)).executed.push_back(step);
}

Step Rendezvous::sender(const Instance &instance) const {
  const Point point = pointOf(instance);
  const End &end = ends_.at({point, instance.role});
  return ends_.at({point, end.others.front()}).executed[end.executed.size() - 1]; // of several, all send the same
}

std::map<uint32_t, Instance> Rendezvous::others(const Instance &instance) const {
  const Point point = pointOf(instance);
  const End &end = ends_.at({point, instance.role});
  std::map<uint32_t, Instance> others;
  for (uint32_t other : end.others)
    others[other] = ends_.at({point, other}).came[end.executed.size() - 1];
  return others;
}

std::string Rendezvous::absenceAt(const Instance &instance) {
  const std::string name = nameOf(pointOf(instance));
  return instance.command->has_collective()
             ? "the other ranks of " + name + ", which do not come to this " + agreement(*instance.command)
             : "the other end of " + name + ", which does not come to " +
                   (instance.command->has_send() ? "receive" : "send") + " this message";
}

} // namespace ds::check
