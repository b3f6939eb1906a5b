//===- FlightFile.h - the flight record of one rank, as a file ------------===//
//
// flight-RANK.json, one JSON value a line: an object that describes the rank, then an array for each command that a
// queue keeps, the oldest first, then {"commands": N}, so that half a file is known to be one:
//
//   {"flight_recorder": 2, "rank": 2, "ranks": 4, "plan": 1234567, "run": "5f..", ...}
//   [queue, step, program, call, command, entrance, state, wait, waited_ms, began_ms, ended_ms]
//   ...
//
// How often it has entered a communicator or channel is a list, too:
//
//   [queue, kind, index, entrances, [[sent, expected, received], ...]]
//
// Times are milliseconds since 1970 by the clock of rank 0's host, 0 for what has not happened. Commands are indices
// into the plan, which has their names.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "runtime/device/CommandRing.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ds::runtime {

/// What the thread that drives a process's ranks is about.
enum class HostState : uint32_t {
  Works,  ///< on its own: it reads or writes a file
  Awaits, ///< the other processes
  Queues, ///< its ranks' queues, which have a program to run
};

/// What it has been about since some moment.
struct HostStage {
  HostState state = HostState::Works;
  uint64_t number = 0; ///< counts what the host has begun, the same things in the same order in every process
  int64_t sinceMs = 0;
  std::string work = {}; ///< in words: "reads --data d.safetensors"
};

/// A time in which the whole process did not run, longer than a second.
struct Stillness {
  int64_t ms = 0, untilMs = 0;
};

/// PeerMessages, as a file has them.
struct PeerCount {
  uint64_t sent = 0, expected = 0, received = 0;
};

/// How often a rank has entered a communicator or channel from one of its queues.
struct EntranceCount {
  enum class Kind : uint32_t { Collective, Send, Receive };
  uint32_t queue = 0;
  Kind kind = Kind::Collective;
  uint32_t index = 0; ///< of the plan's communicators or channels
  uint64_t entrances = 0;
  std::vector<PeerCount> peers = {}; ///< of a communicator, by member; empty where messages are not counted
};

struct FlightFile {
  static constexpr int version = 2;

  uint32_t rank = 0, ranks = 0;
  uint32_t plan = 0;     ///< CRC-32C of the plan file
  std::string run = {};  ///< the same in every process of a run
  std::string host = {}; ///< its name
  int64_t process = 0;
  std::string reason = {};           ///< "failure" or "signal"
  std::string error = {};            ///< of a failure
  std::vector<uint32_t> missed = {}; ///< ranks that it waited for in vain between steps
  int64_t writtenMs = 0;
  std::vector<HostStage> stages = {{}}; ///< the last ones, the oldest first; never empty
  std::vector<Stillness> stills = {};   ///< likewise; may be empty
  std::vector<std::string> data = {};   ///< files that feeds read
  std::vector<EntranceCount> counts = {};
  std::vector<std::vector<CommandEntry>> queues = {}; ///< in the order of the role's queues; times since 1970

  /// What the host is about.
  const HostStage &stage() const { return stages.back(); }

  std::string text() const;
  /// Throws ds::Error, one sentence that does not name the file, for what is no such text.
  static FlightFile parse(std::string_view text);
};

/// "flight-3.json"
std::string flightFileName(uint32_t rank);

} // namespace ds::runtime
