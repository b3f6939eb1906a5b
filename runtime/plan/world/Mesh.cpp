//===- Mesh.cpp - where ranks stand, and which of them meet ---------------===//
#include "runtime/plan/world/Mesh.h"

#include "core/Error.h"
#include "runtime/plan/plan.pb.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ds::plan {
namespace {

/// The index of the axis called so, or -1.
int axisCalled(const proto::World &world, std::string_view name) {
  for (int i = 0; i < world.axes_size(); ++i)
    if (world.axes(i).name() == name)
      return i;
  return -1;
}

/// Calls visit(stride, size) for each axis of a set, the fastest first.
template <typename Visit> void forEachAxis(const proto::World &world, AxisSet axes, Visit visit) {
  uint64_t stride = 1;
  for (int i = world.axes_size(); i-- > 0; stride *= world.axes(i).size())
    if (axes.contains(uint32_t(i)))
      visit(stride, uint64_t(world.axes(i).size()));
}

} // namespace

AxisSet axesOf(const proto::Plan &plan, uint32_t communicator) {
  AxisSet axes;
  for (uint32_t axis : plan.communicators(int(communicator)).axes())
    if (plan.world().axes(int(axis)).size() > 1)
      axes.add(axis);
  return axes;
}

AxisSet varyingAxes(const proto::World &world, const proto::Placement &placement) {
  AxisSet axes;
  for (const proto::AxisPlacement &one : placement.axes())
    if (one.varies() && world.axes(int(one.axis())).size() > 1)
      axes.add(one.axis());
  return axes;
}

AxisSet batchAxes(const proto::Plan &plan) { // those of all inputs, which PlanReader compares
  return plan.inputs_size() == 0 ? AxisSet() : varyingAxes(plan.world(), plan.inputs(0).placement());
}

uint64_t Group::size() const {
  uint64_t ranks = 1;
  forEachAxis(*world_, axes_, [&](uint64_t, uint64_t size) { ranks *= size; });
  return ranks;
}

uint64_t Group::coordinate(uint64_t rank) const {
  uint64_t coordinate = 0, scale = 1;
  forEachAxis(*world_, axes_, [&](uint64_t stride, uint64_t size) {
    coordinate += rank / stride % size * scale;
    scale *= size;
  });
  return coordinate;
}

uint32_t Group::first(uint32_t rank) const {
  uint64_t first = rank;
  forEachAxis(*world_, axes_, [&](uint64_t stride, uint64_t size) { first -= rank / stride % size * stride; });
  return uint32_t(first);
}

std::vector<uint32_t> Group::ranks(uint32_t rank) const {
  std::vector<uint32_t> ranks = {first(rank)};
  forEachAxis(*world_, axes_, [&](uint64_t stride, uint64_t size) {
    const size_t along = ranks.size(); // of the faster axes, once more for each coordinate along this one
    for (size_t i = along; i < along * size; ++i)
      ranks.push_back(uint32_t(ranks[i - along] + stride));
  });
  return ranks;
}

uint64_t worldSize(const proto::Plan &plan) {
  uint64_t ranks = 1;
  for (const proto::Axis &axis : plan.world().axes())
    ranks *= axis.size();
  return ranks;
}

uint64_t axisSize(const proto::World &world, std::string_view name) {
  const int axis = axisCalled(world, name);
  return axis < 0 ? 1 : world.axes(axis).size();
}

uint64_t axisStride(const proto::World &world, uint32_t axis) {
  uint64_t stride = 1;
  for (int i = int(axis) + 1; i < world.axes_size(); ++i)
    stride *= world.axes(i).size();
  return stride;
}

uint64_t axisCoordinate(const proto::World &world, uint32_t axis, uint64_t rank) {
  return rank / axisStride(world, axis) % world.axes(int(axis)).size();
}

uint64_t axisCoordinate(const proto::World &world, std::string_view name, uint64_t rank) {
  const int axis = axisCalled(world, name);
  return axis < 0 ? 0 : axisCoordinate(world, uint32_t(axis), rank);
}

uint32_t receiverOf(const proto::Plan &plan, uint32_t channel, uint32_t rank) {
  const proto::Channel &line = plan.channels(int(channel));
  const uint64_t stride = axisStride(plan.world(), line.axis());
  return uint32_t(rank - line.from() * stride + line.to() * stride);
}

uint32_t senderTo(const proto::Plan &plan, uint32_t channel, uint32_t rank) {
  const proto::Channel &line = plan.channels(int(channel));
  const uint64_t stride = axisStride(plan.world(), line.axis());
  return uint32_t(rank - line.to() * stride + line.from() * stride);
}

const proto::Role &roleOfRank(const proto::Plan &plan, uint32_t rank) {
  for (const proto::Role &role : plan.roles())
    for (int i = 0; i + 1 < role.ranks_size(); i += 2)
      if (rank >= role.ranks(i) && rank <= role.ranks(i + 1))
        return role;
  throw Error("the plan has no rank " + std::to_string(rank) + ", only " + std::to_string(worldSize(plan)));
}

uint64_t batchRanks(const proto::Plan &plan) { return Group(plan.world(), batchAxes(plan)).size(); }

RankPosition positionOfRank(const proto::Plan &plan, uint32_t rank) {
  const Group batch(plan.world(), batchAxes(plan));
  return {.rank = rank, .batchCoordinate = batch.coordinate(rank), .batchRanks = batch.size()};
}

uint64_t operandOffset(const proto::Plan &plan, const proto::Operand &operand, uint32_t rank) {
  if (operand.rank_stride() == 0)
    return operand.byte_offset();
  return operand.byte_offset() + operand.rank_stride() * Group(plan, operand.communicator()).coordinate(rank);
}

} // namespace ds::plan
