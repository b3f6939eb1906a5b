//===- ProfileTables.h - where the time of a step goes, as tables ---------===//
#pragma once

#include "runtime/profile/Profile.h"

#include <cstdint>
#include <span>
#include <string>

namespace ds::runtime {

/// Some steps of a run, on the host's clock.
struct StepTimes {
  uint64_t steps = 0;
  double seconds = 0, saveSeconds = 0; ///< of the steps; of the waits for checkpoints between them
};

/// Milliseconds a step of what a rank's compute queue did: its commands run one after another, so rows add up to the
/// step's time with what is left, `other`. Beside it: what the rank's other queues did meanwhile. A collective's time
/// is that of its call, with the wait for the slowest rank. Cf. wall_clock_breakdown of DeepSpeed.
std::string phaseTable(std::span<const CommandTime> times, const StepTimes &steps);

/// Collectives and messages of a rank by kind and size: how often, how long, and the bandwidths of nccl-tests: algbw is
/// the whole tensor's bytes over the time, busbw what a link carries of it, with a factor of 2 (n - 1) / n for an
/// all_reduce, 1 for a message and a broadcast, and (n - 1) / n for the others. Empty: it has none. Cf. comms_logger.
std::string communicationTable(const plan::proto::Plan &plan, std::span<const CommandTime> times);

/// A rank's step: parameters, and MACs, FLOPs, milliseconds and FLOP/s of its products by phase and by kernel. Cf.
/// flops_profiler.
std::string flopsTable(const plan::proto::Plan &plan, std::span<const CommandTime> times, double stepSeconds);

} // namespace ds::runtime
