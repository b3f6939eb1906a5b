//===- Rendezvous.cpp - collectives and messages of several roles match ---===//
#include "compiler/check/schedule/Rendezvous.h"

#include "compiler/check/schedule/Effects.h"
#include "compiler/check/schedule/Refusal.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

namespace ds::check {

namespace {

/// What all that meet must agree on: of a collective its kind and sizes, of a message the types and shapes.
std::string contentsOf(const proto::Command &command) {
  std::string text;
  if (command.has_collective()) {
    text = proto::CollectiveCommand::Kind_Name(command.collective().kind());
    for (const proto::CollectivePart &part : command.collective().parts())
      text += " of " + std::to_string(byteCount(part.source()) / elementBytes(part.source().dtype())) + " " +
              proto::DType_Name(part.source().dtype());
    return text;
  }
  for (const proto::Operand &operand : command.has_send() ? command.send().sources() : command.receive().targets()) {
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

/// All that roles come to at one communicator or channel.
class Point {
public:
  Point(const proto::Plan &plan, const std::string &program, JointTimeline &joint, const std::string &name)
      : plan_(plan), program_(program), joint_(joint), name_(name) {}

  void add(const Step &step) { steps_[step.role].push_back(step); }

  void meet(const plan::RolePairs &pairs) {
    for (const auto &[role, steps] : steps_)
      requireOneQueue(steps);
    for (const auto &[role, steps] : steps_)
      if (!instanceOf(steps[0]).command->has_collective() && std::ranges::none_of(pairs, [&](const auto &pair) {
            return pair.first != pair.second && (uint32_t(pair.first) == role || uint32_t(pair.second) == role);
          }))
        throw Refusal{"progress", text(steps[0]) + ": no other role stands at the other end of " + name_};
    for (const auto &[a, b] : pairs)
      if (a != b && steps_.contains(uint32_t(a)) && steps_.contains(uint32_t(b)))
        for (size_t k = 0; k < std::min(steps_[uint32_t(a)].size(), steps_[uint32_t(b)].size()); ++k)
          meet(steps_[uint32_t(b)][k], steps_[uint32_t(a)][k]);
  }

private:
  const Instance &instanceOf(const Step &step) const { return joint_.timelines[step.role].instances[step.instance]; }
  std::string text(const Step &step) const { return placeOf(plan_, program_, instanceOf(step)); }
  std::string queueOf(const Step &step) const {
    return plan_.roles(int(step.role)).queues(int(instanceOf(step).queue)).name();
  }

  void requireOneQueue(const std::vector<Step> &steps) const {
    for (const Step &step : steps)
      if (instanceOf(step).queue != instanceOf(steps[0]).queue)
        throw Refusal{"progress",
                      text(step) + ": " + name_ + " is entered by queue " + queueOf(step) + " and by queue " +
                          queueOf(steps[0]) + ", so the order of its " +
                          (instanceOf(step).command->has_collective() ? "collectives" : "messages") +
                          " depends on timing",
                      text(steps[0]) + " enters it on the other queue"};
  }

  void meet(const Step &own, const Step &theirs) {
    const proto::Command &mine = *instanceOf(own).command, &yours = *instanceOf(theirs).command;
    if (agreed_.emplace(&mine, &yours).second)
      requireEqual(own, theirs);
    if (!mine.has_collective()) { // of several that send, all send the same
      joint_.senders.try_emplace(mine.has_send() ? theirs : own, mine.has_send() ? own : theirs);
    } else if (mine.collective().kind() == proto::CollectiveCommand::ALL_GATHER) {
      joint_.gathers[own][theirs.role] = instanceOf(theirs);
      joint_.gathers[theirs][own.role] = instanceOf(own);
    }
  }

  void requireEqual(const Step &own, const Step &theirs) const {
    const proto::Command &mine = *instanceOf(own).command, &yours = *instanceOf(theirs).command;
    const std::string what = contentsOf(mine), other = contentsOf(yours);
    const bool isOneWay = mine.has_collective() || mine.has_send() != yours.has_send();
    if (what != other || !isOneWay)
      throw Refusal{"progress",
                    text(own) + " " + verbOf(mine) + " " + what + " on " + name_ + ", but role " +
                        plan_.roles(int(theirs.role)).name() + " " + verbOf(yours) + " " + other,
                    text(theirs) + " " + verbOf(yours) + " that"};
  }

  const proto::Plan &plan_;
  const std::string &program_;
  JointTimeline &joint_;
  const std::string name_;
  std::map<uint32_t, std::vector<Step>> steps_;                                // by role, in its order
  std::set<std::pair<const proto::Command *, const proto::Command *>> agreed_; // which have been compared
};

} // namespace

void meet(const proto::Plan &plan, const std::string &program, plan::RolePeers &peers, JointTimeline &joint) {
  std::map<uint32_t, Point> communicators, channels;
  for (const Step &step : joint.order) {
    const proto::Command &command = *joint.timelines[step.role].instances[step.instance].command;
    if (command.has_collective()) {
      const uint32_t index = command.collective().communicator();
      const std::string name = "communicator " + plan.communicators(int(index)).name();
      communicators.try_emplace(index, plan, program, joint, name).first->second.add(step);
    } else if (command.has_send() || command.has_receive()) {
      const uint32_t index = command.has_send() ? command.send().channel() : command.receive().channel();
      const std::string name = "channel " + plan.channels(int(index)).name();
      channels.try_emplace(index, plan, program, joint, name).first->second.add(step);
    }
  }
  for (auto &[index, point] : communicators)
    point.meet(peers.inCommunicator(index));
  for (auto &[index, point] : channels)
    point.meet(peers.onChannel(index));
}

} // namespace ds::check
