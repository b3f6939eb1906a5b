//===- CheckMessages.cpp - channels, and that both ends agree -------------===//
#include "core/DType.h"
#include "runtime/plan/format/PlanChecks.h"
#include "runtime/plan/plan.pb.h"
#include "runtime/plan/world/Mesh.h"
#include "runtime/plan/world/RolePeers.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace ds::plan {
namespace {

using Operands = google::protobuf::RepeatedPtrField<proto::Operand>;

constexpr int maxChannels = 1 << 15; // MPI has as many tags at least

const Operands &operandsOf(const proto::Command &command) {
  return command.has_send() ? command.send().sources() : command.receive().targets();
}

uint32_t channelOf(const proto::Command &command) {
  return command.has_send() ? command.send().channel() : command.receive().channel();
}

bool isMessage(const proto::Command &command) { return command.has_send() || command.has_receive(); }

/// "float32 [4, 8] and int64 []".
std::string sizesText(const proto::Command &command) {
  std::string text;
  for (const proto::Operand &operand : operandsOf(command))
    text +=
        (text.empty() ? "" : " and ") + std::string(name(DType(operand.dtype()))) + " " + shapeText(operand.shape());
  return text;
}

/// The ranks of a role that stand at its least and at its greatest coordinate along an axis.
std::pair<uint64_t, uint64_t> outermost(const proto::Plan &plan, const proto::Role &role, uint32_t axis) {
  std::pair<uint64_t, uint64_t> ranks(role.ranks(0), role.ranks(0));
  const auto at = [&](uint64_t rank) { return axisCoordinate(plan.world(), axis, rank); };
  for (int i = 0; i + 1 < role.ranks_size(); i += 2)
    for (uint64_t rank = role.ranks(i); rank <= role.ranks(i + 1); ++rank)
      ranks = {at(rank) < at(ranks.first) ? rank : ranks.first, at(rank) > at(ranks.second) ? rank : ranks.second};
  return ranks;
}

/// The ranks of a role stand where the channel begins, if it sends there, or where it ends.
void checkCoordinate(const proto::Plan &plan, const proto::Role &role, uint32_t index, bool sends,
                     std::pair<uint64_t, uint64_t> outermost, const std::string &place) {
  const proto::Channel &channel = plan.channels(int(index));
  const uint32_t expected = sends ? channel.from() : channel.to();
  for (uint64_t rank : {outermost.first, outermost.second})
    if (const uint64_t at = axisCoordinate(plan.world(), channel.axis(), rank); at != expected)
      refuse(place, std::string(sends ? "it sends on " : "it receives from ") +
                        describe("channel", index, channel.name()) + ", which " + (sends ? "begins" : "ends") +
                        " at coordinate " + std::to_string(expected) + " of axis " +
                        plan.world().axes(int(channel.axis())).name() + ", but rank " + std::to_string(rank) +
                        " of role " + role.name() + " stands at " + std::to_string(at));
}

/// What a role says in a run of a program on one channel: how many messages, and a hash of their sizes in order.
struct Said {
  uint64_t messages = 0, chain = 0;
  bool operator==(const Said &) const = default;
};

/// By channel, of one role in one program.
std::map<uint32_t, Said> saidBy(const proto::Role &role, const std::string &program) {
  std::vector<std::vector<std::pair<uint32_t, uint64_t>>> routines; // channel and hash of each message
  for (const proto::Routine &routine : role.routines()) {
    routines.emplace_back();
    for (const proto::Command &command : routine.commands())
      if (isMessage(command))
        routines.back().emplace_back(channelOf(command), std::hash<std::string>()(sizesText(command)));
  }
  std::map<uint32_t, Said> said;
  for (const proto::Program &candidate : role.programs())
    if (candidate.name() == program)
      for (const proto::Call &call : candidate.calls())
        for (const auto &[channel, hash] : routines[call.routine()]) {
          Said &so = said[channel];
          ++so.messages;
          so.chain = (so.chain ^ hash) * 0x9E3779B97F4A7C15u + 1;
        }
  return said;
}

/// The messages of a role on a channel in a run, one after another.
class Messages {
public:
  Messages(const proto::Plan &plan, int role, const std::string &program, uint32_t channel)
      : plan_(plan), role_(plan.roles(role)), channel_(channel) {
    for (const proto::Program &candidate : role_.programs())
      if (candidate.name() == program)
        program_ = &candidate;
  }

  /// The next one, or nullptr.
  const proto::Command *next() {
    for (; call_ < program_->calls_size(); ++call_, command_ = -1) {
      const proto::Routine &routine = role_.routines(int(program_->calls(call_).routine()));
      while (++command_ < routine.commands_size())
        if (const proto::Command &command = routine.commands(command_);
            isMessage(command) && channelOf(command) == channel_)
          return &command;
    }
    return nullptr;
  }
  std::string place() const { return placeInRun(plan_, role_, *program_, call_, command_); }

private:
  const proto::Plan &plan_;
  const proto::Role &role_;
  const uint32_t channel_;
  const proto::Program *program_ = nullptr;
  int call_ = 0, command_ = -1;
};

[[noreturn]] void refuseDifference(const proto::Plan &plan, int sender, int receiver, const std::string &program,
                                   uint32_t channel) {
  Messages sends(plan, sender, program, channel), receives(plan, receiver, program, channel);
  const std::string onChannel = " on " + describe("channel", channel, plan.channels(int(channel)).name());
  for (uint64_t k = 0;; ++k) {
    const proto::Command *send = sends.next(), *receive = receives.next();
    if (send != nullptr && receive != nullptr && sizesText(*send) == sizesText(*receive))
      continue;
    if (send != nullptr && receive != nullptr)
      refuse(sends.place(), "role " + plan.roles(sender).name() + " sends " + sizesText(*send) + " as message " +
                                std::to_string(k) + onChannel + ", but role " + plan.roles(receiver).name() +
                                " receives " + sizesText(*receive) + " in " + receives.place());
    refuse(send != nullptr ? sends.place() : receives.place(),
           "role " + plan.roles(send != nullptr ? sender : receiver).name() +
               (send != nullptr ? " sends" : " receives") + " message " + std::to_string(k) + onChannel +
               ", but role " + plan.roles(send != nullptr ? receiver : sender).name() +
               (send != nullptr ? " receives" : " sends") + " only " + std::to_string(k));
  }
}

} // namespace

void checkChannels(const proto::Plan &plan) {
  if (plan.channels_size() > maxChannels)
    refuseSize("channels", "there are " + std::to_string(plan.channels_size()) + ", more than 2^15");
  OwnNames names("channel");
  for (int i = 0; i < plan.channels_size(); ++i) {
    const proto::Channel &channel = plan.channels(i);
    names.add(channel.name(), i, describe("channel", i, ""));
    const std::string place = describe("channel", i, channel.name());
    checkIndex(channel.axis(), plan.world().axes_size(), "axis", place);
    const proto::Axis &axis = plan.world().axes(int(channel.axis()));
    if (channel.from() >= axis.size() || channel.to() >= axis.size() || channel.from() == channel.to())
      refuse(place, "it leads from " + std::to_string(channel.from()) + " to " + std::to_string(channel.to()) +
                        ", which are not two of the " + std::to_string(axis.size()) + " coordinates of axis " +
                        axis.name());
  }
}

void checkMessage(const proto::Plan &plan, const proto::Role &role, const proto::Command &command,
                  const std::string &place) {
  checkIndex(channelOf(command), plan.channels_size(), "channel", place);
  if (operandsOf(command).empty())
    refuse(place, "its message has no operands");
  const proto::Operand::Access access = command.has_send() ? proto::Operand::READ : proto::Operand::WRITE;
  for (int i = 0; i < operandsOf(command).size(); ++i) {
    const std::string here =
        place + (command.has_send() ? " (send), source " : " (receive), target ") + std::to_string(i);
    checkOperand(plan, role, operandsOf(command)[i], here);
    if (operandsOf(command)[i].access() != access)
      refuse(here, "its access must be " + proto::Operand::Access_Name(access));
  }
}

void checkMessageQueues(const proto::Plan &plan, const proto::Role &role) {
  std::map<uint32_t, std::pair<uint64_t, uint64_t>> extents; // by axis: outermost ranks
  std::map<uint32_t, uint32_t> queueOf, channelOn;           // by channel, by queue
  std::set<std::pair<uint32_t, bool>> ends;                  // channels, and whether it sends there
  for (int r = 0; r < role.routines_size(); ++r)
    for (int c = 0; c < role.routines(r).commands_size(); ++c) {
      const proto::Command &command = role.routines(r).commands(c);
      const proto::Queue &queue = role.queues(int(command.queue()));
      const bool onMessages = queue.kind() == proto::Queue::MESSAGE;
      const std::string place = describe("routine", r, role.routines(r).name()) + ", command " + std::to_string(c);
      if (isMessage(command) != onMessages)
        refuse(place, onMessages ? "queue " + queue.name() + " is for messages alone, and it is none"
                                 : "it is a message, but queue " + queue.name() + " is not of kind MESSAGE");
      if (!isMessage(command))
        continue;
      const uint32_t index = channelOf(command), axis = plan.channels(int(index)).axis();
      if (!extents.contains(axis))
        extents[axis] = outermost(plan, role, axis);
      if (ends.emplace(index, command.has_send()).second)
        checkCoordinate(plan, role, index, command.has_send(), extents[axis], place);
      const uint32_t firstQueue = queueOf.emplace(index, command.queue()).first->second;
      const uint32_t firstChannel = channelOn.emplace(command.queue(), index).first->second;
      if (firstQueue != command.queue() || firstChannel != index)
        refuse(place, "a message of " + describe("channel", index, plan.channels(int(index)).name()) + " on queue " +
                          queue.name() + ": a channel has one queue at each end, and that queue no other channel" +
                          note("queue " + role.queues(int(firstQueue)).name() + " has that channel first, and queue " +
                               queue.name() + " has " +
                               describe("channel", firstChannel, plan.channels(int(firstChannel)).name())));
    }
}

void checkMessagesAgree(const proto::Plan &plan, RolePeers &peers) {
  for (const char *program : {"step", "evaluate"}) {
    std::vector<std::map<uint32_t, Said>> said;
    for (const proto::Role &role : plan.roles())
      said.push_back(saidBy(role, program));
    for (uint32_t channel = 0; channel < uint32_t(plan.channels_size()); ++channel)
      for (const auto &[sender, receiver] : peers.onChannel(channel)) {
        const auto at = [&](int role) {
          const auto found = said[size_t(role)].find(channel);
          return found == said[size_t(role)].end() ? Said() : found->second;
        };
        if (at(sender) != at(receiver))
          refuseDifference(plan, sender, receiver, program, channel);
      }
  }
}

} // namespace ds::plan
