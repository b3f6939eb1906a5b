//===- Groups.h - which ranks a communicator joins ------------------------===//
#pragma once

#include "runtime/plan/plan.pb.h"

#include <cstdint>
#include <vector>

namespace ds::plan {

/// Ranks of one group of a communicator: the product of its axes' sizes.
uint64_t groupSize(const proto::Plan &plan, uint32_t communicator);

/// Where a rank stands among the ranks of its group, in rank order.
uint64_t groupCoordinate(const proto::Plan &plan, uint32_t communicator, uint32_t rank);

/// The first rank of the group that `rank` belongs to.
uint32_t groupFirst(const proto::Plan &plan, uint32_t communicator, uint32_t rank);

/// The ranks of the group that `rank` belongs to, ascending.
std::vector<uint32_t> groupRanks(const proto::Plan &plan, uint32_t communicator, uint32_t rank);

} // namespace ds::plan
