//===- Ranks.cpp - where a rank stands in the world ---------------------------===//
#include "runtime/plan/Ranks.h"

#include "core/Error.h"
#include "runtime/plan/plan.pb.h"

#include <cstdint>
#include <string>

namespace ds::plan {

uint64_t worldSize(const proto::Plan &plan) {
  uint64_t ranks = 1;
  for (const proto::Axis &axis : plan.world().axes())
    ranks *= axis.size();
  return ranks;
}

const proto::Role &roleOfRank(const proto::Plan &plan, uint32_t rank) {
  for (const proto::Role &role : plan.roles())
    for (int i = 0; i + 1 < role.ranks_size(); i += 2)
      if (rank >= role.ranks(i) && rank <= role.ranks(i + 1))
        return role;
  throw Error("the plan has no rank " + std::to_string(rank) + ", only " + std::to_string(worldSize(plan)));
}

RankPosition positionOfRank(const proto::Plan &plan, uint32_t rank) {
  RankPosition position{.rank = rank};
  uint64_t rest = rank; // the last axis is the fastest
  for (int i = plan.world().axes_size(); i-- > 0;) {
    const proto::Axis &axis = plan.world().axes(i);
    if (axis.name() == "data") {
      position.dataCoordinate = rest % axis.size();
      position.dataRanks = axis.size();
    }
    rest /= axis.size();
  }
  return position;
}

} // namespace ds::plan
