//===- Mesh.h - where ranks stand, and which of them meet -----------------===//
//
// Ranks are the points of a grid. Its axes are those of the plan's world, the last one the fastest.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "runtime/plan/plan.pb.h"

#include <cstdint>
#include <string_view>
#include <vector>

namespace ds::plan {

/// Axes along which ranks differ. An axis of size 1 belongs to no set that is made from a plan.
class AxisSet {
public:
  void add(uint32_t axis) { bits_ |= 1u << axis; }
  bool contains(uint32_t axis) const { return (bits_ >> axis & 1) != 0; }
  bool empty() const { return bits_ == 0; }
  bool includes(AxisSet other) const { return (other.bits_ & ~bits_) == 0; }

  AxisSet operator|(AxisSet other) const { return AxisSet(bits_ | other.bits_); }
  /// Takes away those of `other`.
  AxisSet operator-(AxisSet other) const { return AxisSet(bits_ & ~other.bits_); }
  auto operator<=>(const AxisSet &) const = default;

  AxisSet() = default;

private:
  explicit AxisSet(uint32_t bits) : bits_(bits) {}

  uint32_t bits_ = 0; // by axis of the world
};

/// Returns the axes that a communicator joins.
AxisSet axesOf(const proto::Plan &plan, uint32_t communicator);

/// Returns the axes along which ranks have values of their own.
AxisSet varyingAxes(const proto::World &world, const proto::Placement &placement);

/// Returns the axes along which inputs vary: ranks that differ there have samples of their own.
AxisSet batchAxes(const proto::Plan &plan);

/// Ranks that differ from each other along some axes alone. They are numbered in rank order.
class Group {
public:
  Group(const proto::World &world, AxisSet axes) : world_(&world), axes_(axes) {}
  Group(const proto::Plan &plan, uint32_t communicator) : Group(plan.world(), axesOf(plan, communicator)) {}

  uint64_t size() const;
  /// Returns the number of a rank within its group.
  uint64_t coordinate(uint64_t rank) const;
  /// Returns the first rank of the group that `rank` belongs to.
  uint32_t first(uint32_t rank) const;
  /// Returns the ranks of that group, ascending.
  std::vector<uint32_t> ranks(uint32_t rank) const;

private:
  const proto::World *world_; // not null
  AxisSet axes_;
};

/// Counts the ranks of the plan's world.
uint64_t worldSize(const proto::Plan &plan);

/// Returns the size of the axis called so; 1 where the world has none.
uint64_t axisSize(const proto::World &world, std::string_view name);

/// Counts the ranks between two neighbours along an axis.
uint64_t axisStride(const proto::World &world, uint32_t axis);

/// Returns the coordinate of a rank along an axis of the world; along one that it does not have, 0.
uint64_t axisCoordinate(const proto::World &world, uint32_t axis, uint64_t rank);
uint64_t axisCoordinate(const proto::World &world, std::string_view name, uint64_t rank);

/// Returns the other end of a channel's line: of `rank`, which stands at the channel's `from`, or at its `to`.
uint32_t receiverOf(const proto::Plan &plan, uint32_t channel, uint32_t rank);
uint32_t senderTo(const proto::Plan &plan, uint32_t channel, uint32_t rank);

/// Returns the rank's role; throws ds::Error for a rank that the plan does not have.
const proto::Role &roleOfRank(const proto::Plan &plan, uint32_t rank);

/// Counts the ranks among which the micro-batches of a step are dealt out.
uint64_t batchRanks(const proto::Plan &plan);

/// Where a rank stands along the batch axes, and so which micro-batches are its own.
struct RankPosition {
  uint32_t rank = 0;
  uint64_t batchCoordinate = 0; ///< r
  uint64_t batchRanks = 1;      ///< d

  /// Micro-step k of rank r is micro-batch k * d + r of the optimizer step.
  uint64_t globalMicrobatch(uint64_t microStep) const { return microStep * batchRanks + batchCoordinate; }
};
RankPosition positionOfRank(const proto::Plan &plan, uint32_t rank);

/// Returns the byte of its buffer at which an operand begins on a rank.
uint64_t operandOffset(const proto::Plan &plan, const proto::Operand &operand, uint32_t rank);

} // namespace ds::plan
