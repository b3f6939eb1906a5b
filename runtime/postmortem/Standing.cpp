//===- Standing.cpp - where a queue stands, in the plan's names -----------===//
#include "runtime/postmortem/Standing.h"

#include "runtime/device/CommandRing.h"
#include "runtime/executor/TracedTask.h"
#include "runtime/flight/FlightFile.h"
#include "runtime/plan/format/Lengths.h"
#include "runtime/plan/plan.pb.h"
#include "runtime/plan/run/CommandName.h"
#include "runtime/plan/world/Mesh.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

namespace ds::runtime {
namespace {

std::string joined(const std::vector<std::string> &names, const char *last) {
  std::string text;
  for (size_t i = 0; i < names.size() && i < 4; ++i)
    text += (i == 0 ? "" : i + 1 == names.size() ? last : ", ") + names[i];
  return names.size() > 4 ? text + " or " + std::to_string(names.size() - 4) + " more" : text;
}

} // namespace

Standing::Standing(const plan::proto::Plan &plan, const FlightFile &file, uint32_t queue, const CommandEntry &entry)
    : plan_(plan), file_(file), role_(plan::roleOfRank(plan, file.rank)), queue_(queue), entry_(entry),
      index_(entry.command) {
  while (index_ >= uint32_t(role_.routines(int(routine_)).commands_size()))
    index_ -= uint32_t(role_.routines(int(routine_++)).commands_size());
  command_ = &role_.routines(int(routine_)).commands(int(index_));
}

bool Standing::worksAlone() const {
  return entry_.state == CommandState::Running && !command_->has_collective() && !command_->has_send() &&
         !command_->has_receive();
}

double Standing::seconds() const {
  const bool runs = entry_.state == CommandState::Running;
  const int64_t since = runs ? entry_.beginMs : entry_.waitMs, end = runs ? entry_.endMs : entry_.beginMs;
  return double(std::max<int64_t>(0, (end > 0 ? end : file_.writtenMs) - since)) / 1000;
}

std::string Standing::when() const {
  const plan::proto::Program &program = role_.programs(int(entry_.program));
  const uint32_t microbatch = program.calls(int(entry_.call)).microbatch();
  return (plan::isProgram(program.name(), "evaluate") ? "the evaluation after step " + std::to_string(entry_.step)
                                                      : "step " + std::to_string(entry_.step + 1)) +
         ", micro-batch " + std::to_string(microbatch);
}

std::string Standing::op() const { return plan::commandName(plan_, role_, routine_, index_); }

std::string Standing::label() const { return traceLabel(*command_, routine(), op()).name; }

std::string Standing::what() const {
  const std::string number = entry_.entrance > 0 ? " #" + std::to_string(entry_.entrance) : "";
  if (command_->has_collective())
    return label() + number + " of communicator " +
           plan_.communicators(int(command_->collective().communicator())).name() + " (" + op() + ")";
  if (command_->has_send())
    return "send" + number + " on channel " + plan_.channels(int(command_->send().channel())).name() + " to rank " +
           std::to_string(plan::receiverOf(plan_, command_->send().channel(), file_.rank)) + " (" + op() + ")";
  if (command_->has_receive())
    return "receive" + number + " on channel " + plan_.channels(int(command_->receive().channel())).name() +
           " from rank " + std::to_string(plan::senderTo(plan_, command_->receive().channel(), file_.rank)) + " (" +
           op() + ")";
  if (command_->has_feed())
    return "feed of input " + plan_.inputs(int(command_->feed().input())).name() + " from " +
           joined(file_.data, " or ");
  return label() + " (" + op() + ")";
}

/// Which command raises what it waits for. Of several the first is named.
std::string Standing::awaited() const {
  if (entry_.wait >= uint32_t(command_->waits_size()))
    return "is about to begin";
  const plan::proto::Wait &wait = command_->waits(int(entry_.wait));
  const uint64_t microbatch = role_.programs(int(entry_.program)).calls(int(entry_.call)).microbatch();
  const uint64_t value = microbatch + 1 - std::min<uint64_t>(wait.delay(), microbatch + 1);
  std::string text = "waits for event " + role_.events(int(wait.event())).name() + " to reach " + std::to_string(value);
  for (uint32_t routine = 0; routine < uint32_t(role_.routines_size()); ++routine)
    for (uint32_t i = 0; i < uint32_t(role_.routines(int(routine)).commands_size()); ++i) {
      const plan::proto::Command &command = role_.routines(int(routine)).commands(int(i));
      if (std::ranges::find(command.signals(), wait.event()) != command.signals().end())
        return text + ", which queue " + role_.queues(int(command.queue())).name() + " raises after " +
               plan::commandName(plan_, role_, routine, i) + ",";
    }
  return text;
}

std::string Standing::sentence() const {
  if (entry_.state == CommandState::Waiting)
    return awaited() + " before " + what() + ", for " + secondsText(seconds());
  return "in " + what() + " for " + secondsText(seconds());
}

std::optional<Standing> standingOf(const plan::proto::Plan &plan, const FlightFile &file, uint32_t queue) {
  for (const CommandEntry &entry : file.queues[queue])
    if (entry.state != CommandState::Done)
      return Standing(plan, file, queue, entry);
  return std::nullopt;
}

std::string secondsText(double seconds) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), seconds < 100 ? "%.1f s" : "%.0f s", seconds);
  return text.data();
}

std::string ranksText(const std::vector<uint32_t> &ranks) {
  if (ranks.size() == 1)
    return "rank " + std::to_string(ranks[0]);
  if (ranks.size() > 2 && ranks.back() - ranks[0] + 1 == ranks.size())
    return "ranks " + std::to_string(ranks[0]) + " to " + std::to_string(ranks.back());
  std::string text = "ranks ";
  for (size_t i = 0; i < ranks.size() && i < 8; ++i)
    text += (i == 0 ? "" : i + 1 == ranks.size() ? " and " : ", ") + std::to_string(ranks[i]);
  return ranks.size() > 8 ? text + " and " + std::to_string(ranks.size() - 8) + " more" : text;
}

} // namespace ds::runtime
