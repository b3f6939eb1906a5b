//===- FlightRank.h - what one rank keeps of itself -----------------------===//
#pragma once

#include "runtime/device/CommandRing.h"
#include "runtime/device/PeerMessages.h"
#include "runtime/flight/FlightFile.h"
#include "runtime/plan/plan.pb.h"

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <vector>

namespace ds::runtime {

/// What a command enters, its entrances 0; nothing for one that stays on its rank.
std::optional<EntranceCount> entranceOf(const plan::proto::Command &command);

/// A ring for each of its queues, and how often it has entered each communicator and channel. All memory is there
/// before the first step.
class FlightRank {
public:
  FlightRank(const plan::proto::Plan &plan, uint32_t rank);

  uint32_t rank() const noexcept { return rank_; }
  RunMark &run() noexcept { return run_; }
  CommandRing &ring(uint32_t queue) noexcept { return rings_[queue]; }
  /// Of the communicator or channel that a command enters; nullptr for one that stays on the rank.
  Entrances *entrances(const plan::proto::Command &command) noexcept;
  /// With the members of the communicator that a command enters; empty for any other command.
  std::span<PeerMessages> messages(const plan::proto::Command &command) noexcept;

  /// What the rank knows of itself, with the times of coarseMs moved by `shiftMs`.
  FlightFile look(int64_t shiftMs) const;

private:
  struct Line {
    EntranceCount what;
    Entrances count = 0;
    std::vector<PeerMessages> messages = {};
  };
  Line *lineOf(const plan::proto::Command &command) noexcept;

  const uint32_t rank_;
  RunMark run_;
  std::deque<CommandRing> rings_; // by queue
  std::deque<Line> lines_;
};

/// Who keeps ranks: the recorder, which an executor need not know.
class FlightRanks {
public:
  /// Lives as long as its keeper.
  virtual FlightRank &addRank(const plan::proto::Plan &plan, uint32_t rank) = 0;

protected:
  ~FlightRanks() = default;
};

} // namespace ds::runtime
