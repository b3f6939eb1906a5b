//===- Groups.h - which ranks communicators and channels join -------------===//
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

/// Ranks between two neighbours along an axis: the last axis is the fastest.
uint64_t axisStride(const proto::World &world, uint32_t axis);

/// The coordinate of a rank along an axis of the world.
uint64_t axisCoordinate(const proto::World &world, uint32_t axis, uint64_t rank);

/// The other end of a channel's line: of `rank`, which stands at the channel's `from`, or at its `to`.
uint32_t receiverOf(const proto::Plan &plan, uint32_t channel, uint32_t rank);
uint32_t senderTo(const proto::Plan &plan, uint32_t channel, uint32_t rank);

} // namespace ds::plan
