//===- Processes.h - simulated processes and their control plane ----------===//
#pragma once

#include "test/simulation/Scheduler.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace ds::sim {

/// What all processes of a run do together, as Training does between steps: bytes go to rank 0 or come from it.
struct Exchange {
  enum class Kind : uint8_t { AnyOf, RequireEqual, Copy } kind = Kind::AnyOf;
  uint32_t flags = 0;        ///< AnyOf: bit r is what rank r says
  uint32_t from = 0, to = 0; ///< Copy
  size_t bytes = 0;          ///< Copy
};

/// What goes wrong with one process, or between it and rank 0.
enum class Trouble : uint8_t {
  None,
  Fails,   ///< it says so and ends, in place of its `at`-th exchange; the others happen at its `at`-th system call
  Dies,    ///< without a word; the kernel closes its connections
  Dies2,   ///< likewise, and what was on its way is lost
  Stands,  ///< for ever
  Pauses,  ///< for `duration`
  Resets,  ///< its connections are reset
  Silence, ///< nothing arrives from it or at it any more
  Replay,  ///< after `duration` another process connects and repeats what it has said
};
const char *name(Trouble trouble);

struct ProcessScenario {
  uint32_t ranks = 2;
  std::vector<Exchange> script;
  std::vector<Scheduler::Time> starts; ///< by rank
  Trouble trouble = Trouble::None;
  uint32_t rank = 0; ///< whose trouble it is
  uint64_t at = 0;
  Scheduler::Time duration{};
  struct Delay { ///< of what the rank sends next after its `at`-th system call
    uint32_t rank;
    uint64_t at;
    Scheduler::Time duration;
  };
  std::vector<Delay> delays;
  std::string text; ///< for people
};

struct ProcessRun {
  struct Rank {
    bool joined = false, finishes = false, over = false;
    std::string error; ///< that it ended with
    std::string wrong; ///< an exchange that had another outcome than it should
  };
  std::vector<Rank> ranks;
  bool hit = false; ///< the trouble came up
  Scheduler::Time hitAt{};
  bool hadJoined = false, hadFinished = false; ///< so far the rank in trouble was then: all had met; it took its leave
};

/// What Trouble::Fails says.
inline constexpr const char *plannedFailure = "planned failure";
/// How long processes wait for each other.
inline constexpr std::chrono::seconds processTimeout{20};

/// The body of the simulated program: each process makes a TcpControlPlane, goes through the script and finishes.
void runProcesses(const ProcessScenario &scenario, ProcessRun &run);

} // namespace ds::sim
