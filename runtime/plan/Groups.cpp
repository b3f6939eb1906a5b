//===- Groups.cpp - which ranks communicators and channels join -----------===//
#include "runtime/plan/Groups.h"

#include "runtime/plan/plan.pb.h"

#include <cstdint>
#include <vector>

namespace ds::plan {

uint64_t axisStride(const proto::World &world, uint32_t axis) {
  uint64_t stride = 1;
  for (int i = int(axis) + 1; i < world.axes_size(); ++i)
    stride *= world.axes(i).size();
  return stride;
}

uint64_t axisCoordinate(const proto::World &world, uint32_t axis, uint64_t rank) {
  return rank / axisStride(world, axis) % world.axes(int(axis)).size();
}

uint64_t groupSize(const proto::Plan &plan, uint32_t communicator) {
  uint64_t size = 1;
  for (uint32_t axis : plan.communicators(int(communicator)).axes())
    size *= plan.world().axes(int(axis)).size();
  return size;
}

uint64_t groupCoordinate(const proto::Plan &plan, uint32_t communicator, uint32_t rank) {
  uint64_t coordinate = 0;
  for (uint32_t axis : plan.communicators(int(communicator)).axes()) // ascending, so in rank order
    coordinate = coordinate * plan.world().axes(int(axis)).size() + axisCoordinate(plan.world(), axis, rank);
  return coordinate;
}

uint32_t groupFirst(const proto::Plan &plan, uint32_t communicator, uint32_t rank) {
  uint64_t first = rank;
  for (uint32_t axis : plan.communicators(int(communicator)).axes())
    first -= axisCoordinate(plan.world(), axis, rank) * axisStride(plan.world(), axis);
  return uint32_t(first);
}

std::vector<uint32_t> groupRanks(const proto::Plan &plan, uint32_t communicator, uint32_t rank) {
  std::vector<uint32_t> ranks = {groupFirst(plan, communicator, rank)};
  for (uint32_t axis : plan.communicators(int(communicator)).axes()) {
    std::vector<uint32_t> wider;
    for (uint32_t start : ranks)
      for (uint32_t i = 0; i < plan.world().axes(int(axis)).size(); ++i)
        wider.push_back(uint32_t(start + i * axisStride(plan.world(), axis)));
    ranks = wider;
  }
  return ranks;
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

} // namespace ds::plan
