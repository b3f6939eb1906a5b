//===- MeshTest.cpp - where ranks stand -----------------------------------===//
#include "runtime/plan/world/Mesh.h"
#include "test/unit/runtime/PipelinePlan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace ds::test {
namespace {

namespace proto = plan::proto;

/// Of 2 x 3 x 2 ranks; rank 9 stands at (1, 1, 1). Axis "expert" has one rank.
proto::Plan meshPlan() {
  proto::Plan plan;
  for (auto [name, size] : {std::pair{"pipe", 2}, {"data", 3}, {"expert", 1}, {"tensor", 2}}) {
    proto::Axis &axis = *plan.mutable_world()->add_axes();
    axis.set_name(name);
    axis.set_size(uint32_t(size));
  }
  plan.add_communicators()->add_axes(1);
  proto::Communicator &others = *plan.add_communicators();
  for (uint32_t axis : {0, 2, 3})
    others.add_axes(axis);
  return plan;
}

TEST(Mesh, GroupsFollowTheAxesThatACommunicatorJoins) {
  const proto::Plan plan = meshPlan();
  const plan::Group data(plan, 0), others(plan, 1);
  EXPECT_EQ(data.ranks(9), (std::vector<uint32_t>{7, 9, 11})); // (1, *, 1)
  EXPECT_EQ(others.ranks(9), (std::vector<uint32_t>{2, 3, 8, 9}));
  EXPECT_EQ(data.coordinate(9), 1u);
  EXPECT_EQ(others.coordinate(9), 3u);
  EXPECT_EQ(others.first(9), 2u);
  EXPECT_EQ(others.size(), 4u);
  EXPECT_EQ(plan::Group(plan.world(), {}).ranks(9), std::vector<uint32_t>{9});
}

TEST(Mesh, GroupsOfAnyAxesNumberTheirRanksInOrder) {
  const proto::Plan plan = meshPlan();
  for (uint32_t bits = 0; bits < 16; ++bits) {
    plan::AxisSet axes;
    for (uint32_t axis = 0; axis < 4; ++axis)
      if (bits >> axis & 1)
        axes.add(axis);
    const plan::Group group(plan.world(), axes);
    for (uint32_t rank = 0; rank < plan::worldSize(plan); ++rank) {
      const std::vector<uint32_t> ranks = group.ranks(rank);
      EXPECT_EQ(ranks.size(), group.size());
      EXPECT_TRUE(std::ranges::is_sorted(ranks));
      EXPECT_EQ(ranks.front(), group.first(rank));
      EXPECT_EQ(ranks[group.coordinate(rank)], rank);
    }
  }
}

TEST(Mesh, SetsOfAxesLeaveOutThoseOfOneRank) {
  const proto::Plan plan = meshPlan();
  const plan::AxisSet data = plan::axesOf(plan, 0), others = plan::axesOf(plan, 1), all = data | others;
  EXPECT_TRUE(others.contains(0) && others.contains(3) && !others.contains(2) && !others.contains(1));
  EXPECT_TRUE(all.includes(others) && !others.includes(all));
  EXPECT_EQ(all - others, data);
  EXPECT_TRUE((data - all).empty());
}

TEST(Mesh, AxesAreFoundByTheirNames) {
  const proto::Plan plan = meshPlan();
  EXPECT_EQ(plan::worldSize(plan), 12u);
  EXPECT_EQ(plan::axisSize(plan.world(), "data"), 3u);
  EXPECT_EQ(plan::axisSize(plan.world(), "sequence"), 1u);
  EXPECT_EQ(plan::axisStride(plan.world(), 0), 6u);
  EXPECT_EQ(plan::axisCoordinate(plan.world(), "data", 10), 2u);
  EXPECT_EQ(plan::axisCoordinate(plan.world(), "sequence", 10), 0u);
}

TEST(Mesh, MicrobatchesAreDealtOutAlongTheBatchAxes) {
  proto::Plan plan = meshPlan();
  EXPECT_EQ(plan::batchRanks(plan), 1u); // it has no inputs
  proto::AxisPlacement &data = *plan.add_inputs()->mutable_placement()->add_axes();
  data.set_axis(1);
  data.set_varies(true);
  const plan::RankPosition position = plan::positionOfRank(plan, 9);
  EXPECT_EQ(position.batchCoordinate, 1u);
  EXPECT_EQ(position.batchRanks, 3u);
  EXPECT_EQ(position.globalMicrobatch(4), 13u); // k * d + r
}

TEST(Mesh, ChannelsHaveTwoEnds) {
  const proto::Plan plan = pipelinePlan(2, 3).plan;
  EXPECT_EQ(plan::receiverOf(plan, 0, 1), 4u);
  EXPECT_EQ(plan::senderTo(plan, 0, 5), 2u);
  EXPECT_EQ(plan::receiverOf(plan, 1, 4), 1u);
}

TEST(Mesh, OperandsBeginAtTheirRanksSlice) {
  const proto::Plan plan = meshPlan();
  proto::Operand operand;
  operand.set_byte_offset(8);
  operand.set_communicator(1);
  EXPECT_EQ(plan::operandOffset(plan, operand, 9), 8u);
  operand.set_rank_stride(16);
  EXPECT_EQ(plan::operandOffset(plan, operand, 9), 8u + 3 * 16);
}

} // namespace
} // namespace ds::test
