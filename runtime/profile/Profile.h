//===- Profile.h - how long each command has taken ------------------------===//
//
// Sums, where a trace (runtime/trace) has every run: two looks at the clock and two additions a command.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "runtime/plan/plan.pb.h"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

namespace ds::runtime {

/// A command of a rank, in its plan.
struct ProfiledCommand {
  uint32_t rank;
  const plan::proto::Role *role;
  const plan::proto::Routine *routine;
  const plan::proto::Command *command;
};

/// The runs of one command. Its queue's thread adds, any may read.
class CommandClock {
public:
  explicit CommandClock(const ProfiledCommand &command) : command_(command) {}

  void add(std::chrono::nanoseconds time) noexcept {
    runs_.fetch_add(1, std::memory_order_relaxed);
    nanoseconds_.fetch_add(uint64_t(time.count()), std::memory_order_relaxed);
  }
  const ProfiledCommand &command() const { return command_; }
  uint64_t runs() const noexcept { return runs_.load(std::memory_order_relaxed); }
  uint64_t nanoseconds() const noexcept { return nanoseconds_.load(std::memory_order_relaxed); }

private:
  const ProfiledCommand command_;
  std::atomic<uint64_t> runs_ = 0, nanoseconds_ = 0;
};

/// Of one command, over some steps.
struct CommandTime {
  ProfiledCommand command;
  uint64_t runs;
  double seconds;
};

/// All commands of the ranks that are looked at, one rank after the other.
class Profile {
public:
  /// Lives as long as the profile.
  CommandClock &add(const ProfiledCommand &command) { return clocks_.emplace_back(command); }
  /// Of every command, in their order, since it was last asked; between steps.
  std::vector<CommandTime> take();

private:
  struct Taken {
    uint64_t runs = 0, nanoseconds = 0;
  };
  std::deque<CommandClock> clocks_;
  std::vector<Taken> taken_; // by clock
};

} // namespace ds::runtime
