//===- World.cpp - where a rank stands ------------------------------------===//
#include "runtime/executor/World.h"

#include "core/Error.h"
#include "runtime/plan/plan.pb.h"

#include <cstdint>
#include <string>

namespace ds::runtime {

uint64_t worldSize(const plan::proto::Plan &plan) {
  uint64_t ranks = 1;
  for (const plan::proto::Axis &axis : plan.world().axes())
    ranks *= axis.size();
  return ranks;
}

const plan::proto::Role &roleOfRank(const plan::proto::Plan &plan, uint32_t rank) {
  for (const plan::proto::Role &role : plan.roles())
    for (int i = 0; i + 1 < role.ranks_size(); i += 2)
      if (rank >= role.ranks(i) && rank <= role.ranks(i + 1))
        return role;
  throw Error("the plan has no rank " + std::to_string(rank) + ", only " + std::to_string(worldSize(plan)));
}

RankPlace placeOfRank(const plan::proto::Plan &plan, uint32_t rank) {
  RankPlace place{.rank = rank};
  uint64_t rest = rank; // the last axis is the fastest
  for (int i = plan.world().axes_size(); i-- > 0;) {
    const plan::proto::Axis &axis = plan.world().axes(i);
    if (axis.name() == "data") {
      place.dataCoordinate = rest % axis.size();
      place.dataRanks = axis.size();
    }
    rest /= axis.size();
  }
  return place;
}

} // namespace ds::runtime
