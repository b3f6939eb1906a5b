//===- Run.h - one run of a program ---------------------------------------===//
#pragma once

#include <cstdint>

namespace ds::runtime {

class Dataset;

/// What the commands of one run of a program share. Written by the host before it submits anything, read by queues.
struct Run {
  uint32_t program = 0;
  uint64_t seed = 0;
  uint64_t step = 0;             ///< optimizer steps done before this one
  const Dataset *data = nullptr; ///< where feeds read
  uint64_t firstSample = 0;      ///< of the run, over all data-parallel ranks, in the endless stream of samples
  uint64_t again = 0;            ///< samples after which the run begins with its first one again; 0: it has its own
};

} // namespace ds::runtime
