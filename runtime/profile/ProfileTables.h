//===- ProfileTables.h - where the time of a step goes, as tables ---------===//
#pragma once

#include "runtime/profile/Profile.h"

#include <cstdint>
#include <span>
#include <string>

namespace ds::runtime {

/// Of `steps` steps: milliseconds a step that each phase computed and communicated. A collective's time is that of its
/// call, with the wait for the slowest rank; queues run beside each other, so times do not add up to the step's. Cf.
/// wall_clock_breakdown of DeepSpeed.
std::string phaseTable(std::span<const CommandTime> times, uint64_t steps);

/// Collectives by kind and size: how often, how long, and the bandwidths of nccl-tests: algbw is the whole tensor's
/// bytes over the time, busbw what a link carries of it, with a factor of 2 (n - 1) / n for an all_reduce and (n - 1) /
/// n for the others. Cf. comms_logger.
std::string collectiveTable(const plan::proto::Plan &plan, uint32_t rank, std::span<const CommandTime> times);

/// Kernels of one step: FLOPs of their products, milliseconds, FLOP/s. Cf. flops_profiler.
std::string flopsTable(const plan::proto::Plan &plan, uint32_t rank, std::span<const CommandTime> times);

} // namespace ds::runtime
