//===- Ranks.h - where a rank stands in the world -----------------------------===//
#pragma once

#include "runtime/plan/plan.pb.h"

#include <cstdint>

namespace ds::plan {

/// Where this rank stands in the world and how its micro-batches are numbered.
struct RankPosition {
  uint32_t rank = 0;
  uint64_t dataCoordinate = 0; ///< r
  uint64_t dataRanks = 1;      ///< d

  /// Micro-step k of rank r is micro-batch k * d + r of the optimizer step.
  uint64_t globalMicrobatch(uint64_t microStep) const { return microStep * dataRanks + dataCoordinate; }
};

/// The rank's role; throws ds::Error for a rank that the plan does not have.
const proto::Role &roleOfRank(const proto::Plan &plan, uint32_t rank);

/// Its position along the data axis.
RankPosition positionOfRank(const proto::Plan &plan, uint32_t rank);

/// Ranks of the plan's world.
uint64_t worldSize(const proto::Plan &plan);

} // namespace ds::plan
