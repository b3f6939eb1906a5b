//===- Standing.h - where a queue stands, in the plan's names -------------===//
#pragma once

#include "runtime/device/CommandRing.h"
#include "runtime/flight/FlightFile.h"
#include "runtime/plan/plan.pb.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace ds::runtime {

/// One entry of a ring, found again in the plan.
class Standing {
public:
  /// `entry` is of `queue` of the rank whose file it is; all outlive it.
  Standing(const plan::proto::Plan &plan, const FlightFile &file, uint32_t queue, const CommandEntry &entry);

  const plan::proto::Role &role() const { return role_; }
  const plan::proto::Command &command() const { return *command_; }
  const plan::proto::Queue &queue() const { return role_.queues(int(queue_)); }
  const CommandEntry &entry() const { return entry_; }
  uint32_t rank() const { return file_.rank; }
  /// It runs a command that concerns nobody else.
  bool worksAlone() const;
  /// Its command is one that other ranks must come to, and it is in it.
  bool isInside() const { return entry_.state == CommandState::Running && !worksAlone(); }

  /// How long until it went on, or else until the record was written, in seconds.
  double seconds() const;
  /// "step 12, micro-batch 0"
  std::string when() const;
  /// The op: "h.0.attn and 2 more", and "collective", "kernel", ... as timelines call them.
  std::string op() const;
  std::string label() const;
  const std::string &routine() const { return role_.routines(int(routine_)).name(); }
  /// "all_gather #41 of communicator data (h.0.attn)", "feed of input x from d.bin", "kernel matmul (h.0.attn)".
  std::string what() const;
  /// "waits for event x to reach 3, which ...", "in " and what() for so long.
  std::string sentence() const;

private:
  std::string awaited() const;

  const plan::proto::Plan &plan_;
  const FlightFile &file_;
  const plan::proto::Role &role_;
  const uint32_t queue_;
  const CommandEntry entry_;
  uint32_t routine_ = 0, index_ = 0;
  const plan::proto::Command *command_ = nullptr;
};

/// Where a queue stands: in its first command that has not ended; nothing for a queue that has nothing to do.
std::optional<Standing> standingOf(const plan::proto::Plan &plan, const FlightFile &file, uint32_t queue);

/// "3.1 s"
std::string secondsText(double seconds);
/// "rank 3", "ranks 0, 2 and 3", "ranks 0 to 7"
std::string ranksText(const std::vector<uint32_t> &ranks);

} // namespace ds::runtime
