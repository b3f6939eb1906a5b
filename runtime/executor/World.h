//===- World.h - where a rank stands --------------------------------------===//
#pragma once

#include "runtime/plan/plan.pb.h"

#include <cstdint>

namespace ds::runtime {

/// Where this rank stands in the world and how its micro-batches are numbered.
struct RankPlace {
  uint32_t rank = 0;
  uint64_t dataCoordinate = 0; ///< r
  uint64_t dataRanks = 1;      ///< d

  /// Micro-step k of rank r is micro-batch k * d + r of the optimizer step.
  uint64_t globalMicrobatch(uint64_t microStep) const { return microStep * dataRanks + dataCoordinate; }
};

/// The rank's role; throws ds::Error for a rank that the plan does not have.
const plan::proto::Role &roleOfRank(const plan::proto::Plan &plan, uint32_t rank);

/// Its place along the data axis.
RankPlace placeOfRank(const plan::proto::Plan &plan, uint32_t rank);

/// Ranks of the plan's world.
uint64_t worldSize(const plan::proto::Plan &plan);

} // namespace ds::runtime
