//===- FlightRank.cpp - what one rank keeps of itself ---------------------===//
#include "runtime/flight/FlightRank.h"

#include "runtime/device/CommandRing.h"
#include "runtime/device/PeerMessages.h"
#include "runtime/flight/FlightFile.h"
#include "runtime/plan/plan.pb.h"
#include "runtime/plan/world/Mesh.h"

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace ds::runtime {

std::optional<EntranceCount> entranceOf(const plan::proto::Command &command) {
  using Kind = EntranceCount::Kind;
  if (command.has_collective())
    return EntranceCount{command.queue(), Kind::Collective, command.collective().communicator()};
  if (command.has_send())
    return EntranceCount{command.queue(), Kind::Send, command.send().channel()};
  if (command.has_receive())
    return EntranceCount{command.queue(), Kind::Receive, command.receive().channel()};
  return std::nullopt;
}

FlightRank::FlightRank(const plan::proto::Plan &plan, uint32_t rank) : rank_(rank) {
  const plan::proto::Role &role = plan::roleOfRank(plan, rank);
  for (int queue = 0; queue < role.queues_size(); ++queue)
    rings_.emplace_back(run_);
  for (const plan::proto::Routine &routine : role.routines())
    for (const plan::proto::Command &command : routine.commands())
      if (const auto what = entranceOf(command); what && lineOf(command) == nullptr) {
        Line &line = lines_.emplace_back();
        line.what = *what;
        if (command.has_collective())
          line.messages = std::vector<PeerMessages>(plan::Group(plan, what->index).size());
      }
}

FlightRank::Line *FlightRank::lineOf(const plan::proto::Command &command) noexcept {
  const auto wanted = entranceOf(command);
  for (Line &line : lines_)
    if (wanted && line.what.queue == wanted->queue && line.what.kind == wanted->kind &&
        line.what.index == wanted->index)
      return &line;
  return nullptr;
}

Entrances *FlightRank::entrances(const plan::proto::Command &command) noexcept {
  Line *line = lineOf(command);
  return line != nullptr ? &line->count : nullptr;
}

std::span<PeerMessages> FlightRank::messages(const plan::proto::Command &command) noexcept {
  Line *line = lineOf(command);
  return line != nullptr ? std::span(line->messages) : std::span<PeerMessages>();
}

FlightFile FlightRank::look(int64_t shiftMs) const {
  FlightFile file;
  file.rank = rank_;
  for (const Line &line : lines_) {
    EntranceCount &count = file.counts.emplace_back(line.what);
    count.entrances = line.count;
    for (const PeerMessages &peer : line.messages)
      count.peers.push_back({.sent = peer.sent, .expected = peer.expected, .received = peer.received});
  }
  for (const CommandRing &ring : rings_) {
    file.queues.push_back(ring.entries());
    for (CommandEntry &entry : file.queues.back())
      for (int64_t *time : {&entry.waitMs, &entry.beginMs, &entry.endMs})
        *time += *time > 0 ? shiftMs : 0;
  }
  return file;
}

} // namespace ds::runtime
