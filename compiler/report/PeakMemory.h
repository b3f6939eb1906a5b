//===- PeakMemory.h - bytes alive at every instant of a program -----------===//
#pragma once

#include "runtime/plan/plan.pb.h"
#include "runtime/plan/run/ProgramLives.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ds::report {

/// While command `command` of call `call` of a program runs.
struct Instant {
  int program = 0, call = 0, command = 0;
};

/// The memory of one space ("device", "host", "nvme") of one role, counted from the lives of its buffers: nothing is
/// copied from what the plan says about its peak.
struct SpaceMemory {
  std::string space;
  uint64_t arenaBytes = 0;             // allocated
  uint64_t residentBytes = 0;          // buffers of scope PLAN, alive from load to exit
  uint64_t peakLiveBytes = 0;          // most bytes alive at one instant of any program
  std::optional<Instant> peak;         // the first such instant; nothing where no program has a command
  std::vector<uint64_t> programPeaks;  // of each program
  plan::CategoryBytes atPeak{};        // bytes of each category
  std::vector<plan::LiveBuffer> alive; // at the peak, largest first

  uint64_t programPeak(const plan::proto::Role &role, std::string_view name) const;
};

/// What a rank goes through, and the most bytes alive meanwhile. init and load: what is resident; save: on the host
/// with the buffer of --save.
struct Phase {
  const char *name; // "init", "load", "step", "eval", "save"
  uint64_t liveBytes;
};
std::vector<Phase> phasesOf(const plan::proto::Plan &plan, const plan::proto::Role &role, const SpaceMemory &memory);

/// The memory of a space, of a plan that validatePlan() accepts.
SpaceMemory measure(const plan::proto::Role &role, std::string_view space);

} // namespace ds::report
