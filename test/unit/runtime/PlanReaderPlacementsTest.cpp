//===- PlanReaderPlacementsTest.cpp - what a plan may say of ranks' parts --===//
#include "core/DType.h"
#include "runtime/plan/format/PlanReader.h"
#include "runtime/plan/plan.pb.h"
#include "test/unit/runtime/BadPlan.h"
#include "test/unit/runtime/Files.h"
#include "test/unit/runtime/PlanBuilder.h"

#include <cstdint>
#include <gtest/gtest.h>
#include <vector>

namespace ds::test {
namespace {

void addBlock(proto::Shard &shard, uint64_t offset, uint64_t stride, uint64_t size) {
  proto::Block &block = *shard.add_blocks();
  block.set_offset(offset);
  block.set_stride(stride);
  block.set_size(size);
}

void setWindow(proto::Placement &placement, uint32_t communicator, uint64_t elements) {
  proto::Window &window = *placement.mutable_window();
  window.set_communicator(communicator);
  window.set_stride(elements);
  window.set_count(elements);
}

} // namespace

/// Two by two ranks, of axes data and tensor. The tensor ranks have halves of w's columns. A bucket holds such a half,
/// of which the data ranks keep halves. The average is the data ranks' own.
proto::Plan placedPlan() {
  PlanBuilder b;
  b.ranks(2);
  proto::Axis &tensor = *b.plan.mutable_world()->add_axes();
  tensor.set_name("tensor");
  tensor.set_size(2);
  b.role().set_ranks(1, 3);
  b.plan.add_communicators()->set_name("tensor");
  b.plan.mutable_communicators(1)->add_axes(1);
  b.input("x", DType::F32, {1, 2});
  const uint32_t w = b.bareVariable("w", DType::F32, {4, 6}, 1);
  proto::AxisPlacement &columns = *b.plan.mutable_variables(int(w))->mutable_placement()->add_axes();
  columns.set_axis(1);
  columns.mutable_shard()->set_dimension(1);
  columns.mutable_shard()->set_repeat(1);
  addBlock(*columns.mutable_shard(), 0, 3, 3);
  const auto average = b.variable("average", DType::F32, {2}, 0, proto::Variable::BUFFER);
  *b.plan.mutable_variables(1)->mutable_placement() = b.plan.inputs(0).placement();
  const uint32_t bucket = b.bucket("weights", {w}, 12);
  b.plan.mutable_buckets(int(bucket))->set_elements(12);
  const auto slice = b.bucketTensor(bucket, true);
  b.metric(b.program("step"), "loss", b.tensor("loss", DType::F32, {}, proto::Buffer::STEP));
  const uint32_t begin = b.routine("begin");
  b.fill(begin, b.queue("compute"), slice);
  b.fill(begin, 0, average);
  b.call(0, begin);
  return b.plan;
}

namespace {

proto::Placement &weight(proto::Plan &plan) { return *variable(plan, 0).mutable_placement(); }
proto::AxisPlacement &axis(proto::Plan &plan) { return *weight(plan).mutable_axes(0); }
proto::Shard &shard(proto::Plan &plan) { return *axis(plan).mutable_shard(); }
proto::Block &block(proto::Plan &plan) { return *shard(plan).mutable_blocks(0); }
proto::Placement &bucket(proto::Plan &plan) { return *plan.mutable_buckets(0)->mutable_placement(); }
proto::Window &window(proto::Plan &plan) { return *bucket(plan).mutable_window(); }
proto::Placement &input(proto::Plan &plan) { return *plan.mutable_inputs(0)->mutable_placement(); }

class PlanReaderRefusesPlacements : public testing::TestWithParam<BadPlan> {};

TEST_P(PlanReaderRefusesPlacements, ABrokenRule) {
  proto::Plan plan = placedPlan();
  GetParam().spoil(plan);
  EXPECT_ERROR(plan::validatePlan(plan), GetParam().error);
}

TEST(PlanReaderPlacements, TakesASoundPlan) {
  proto::Plan plan = placedPlan();
  EXPECT_EQ(errorOf([&] { plan::validatePlan(plan); }), "no error");
}

/// Queries, keys and values side by side: a rank has the same heads of each.
TEST(PlanReaderPlacements, TakesBlocksThatLieApart) {
  proto::Plan plan = placedPlan();
  shard(plan).clear_blocks();
  for (const uint64_t first : {0, 2, 4})
    addBlock(shard(plan), first, 1, 1);
  EXPECT_EQ(errorOf([&] { plan::validatePlan(plan); }), "no error");
}

TEST(PlanReaderPlacements, TakesPartsThatNeighboursShare) {
  proto::Plan plan = placedPlan();
  shard(plan).set_repeat(2);
  block(plan).set_size(6);
  plan.mutable_buckets(0)->set_elements(24);
  setWindow(bucket(plan), 0, 12);
  buffer(plan, 1).set_bytes(48);
  EXPECT_EQ(errorOf([&] { plan::validatePlan(plan); }), "no error");
}

const std::vector<BadPlan> placementRules = {
    BAD(NoAxis, "variable 0 (w), placement: it names axis 2, but there are 2", axis(p).set_axis(2)),
    BAD(AxisTwice, "it names axis tensor twice", *weight(p).add_axes() = axis(p)),
    BAD(AxisOrder, "it names axis data behind a later one of the mesh", weight(p).add_axes()->set_varies(true)),
    BAD(HowNot, "axis tensor: it says neither shard nor partial nor varies", axis(p).clear_how()),
    BAD(VariesFalse, "varies is false", axis(p).set_varies(false)),
    BAD(NoReduction, "no kind 0 of reduction", axis(p).set_partial(proto::AxisPlacement::REDUCTION_UNSPECIFIED)),
    BAD(OtherReduction, "no kind 4 of reduction", axis(p).set_partial(proto::AxisPlacement::Reduction(4))),
    BAD(Dimension, "names dimension 2, but there are 2", shard(p).set_dimension(2)),
    BAD(Overlap, "elements 2 to 2 of dimension 1 belong to two parts", block(p).set_stride(2)),
    BAD(Gap, "elements 2 to 2 of dimension 1 belong to no part", block(p).set_size(2)),
    BAD(GapAtEnd, "elements 4 to 5 of dimension 1 belong to no part", block(p).set_size(2); block(p).set_stride(2)),
    BAD(PartPasses, "block 0 of part 1 is empty or passes the 6 elements of dimension 1", block(p).set_stride(4)),
    BAD(PartWraps, "block 0 of part 1 is empty or passes", block(p).set_stride(UINT64_MAX)),
    BAD(OffsetWraps, "block 0 of part 0 is empty or passes", block(p).set_offset(UINT64_MAX)),
    BAD(EmptyBlock, "block 0 of part 0 is empty or passes", block(p).set_size(0)),
    BAD(NoBlock, "elements 0 to 5 of dimension 1 belong to no part", shard(p).clear_blocks()),
    BAD(NoElements, "dimension 1 has no elements, so no rank has a part of it", shard(p).clear_blocks();
        variable(p, 0).set_shape(1, 0)),
    BAD(RepeatNever, "0 neighbours have each part", shard(p).set_repeat(0)),
    BAD(RepeatOdd, "3 neighbours have each part", shard(p).set_repeat(3)),
    BAD(ManyBlocks, "are more than 65536", for (int i = 0; i < 40000; ++i) addBlock(shard(p), 0, 0, 1)),
    BAD(WindowCommunicator, "bucket 0 (weights), placement, window: it names communicator 2",
        window(p).set_communicator(2)),
    BAD(WindowsOverlap, "6 elements every 5 overlap", window(p).set_stride(5)),
    BAD(WindowsApart, "6 elements every 7 leave gaps", window(p).set_stride(7)),
    BAD(WindowPasses, "7 elements on each of 2 ranks pass the piece's 12", setWindow(bucket(p), 0, 7)),
    BAD(WindowLeaves, "5 elements on each of 2 ranks leave some of the piece's 12", setWindow(bucket(p), 0, 5)),
    BAD(WindowWraps, "pass the piece's 12", setWindow(bucket(p), 0, UINT64_MAX)),
    BAD(WindowOverShard, "the bucket's windows go over axis tensor, along which ranks have other pieces of variable w",
        window(p).set_communicator(1)),
    BAD(WindowOfVariable, "variable 0 (w): its placement has a window, but what ranks share out flat lies in a bucket",
        setWindow(weight(p), 0, 6)),
    BAD(Terms, "says that ranks have terms of it", axis(p).set_partial(proto::AxisPlacement::SUM)),
    BAD(AxisOfOne, "it names axis tensor, which has one rank", p.mutable_world()->mutable_axes(1)->set_size(1);
        role(p).set_ranks(1, 1)),
    BAD(ManyRuns, "a rank's piece lies in more than 4194304 parts of the whole",
        variable(p, 0).set_shape(0, int64_t(1) << 23)),
    BAD(BucketAxes, "its placement names axes", *bucket(p).add_axes() = axis(p)),
    BAD(InputShard, "input 0, placement: each rank is fed all of its micro-batch", *input(p).add_axes() = axis(p)),
    BAD(InputWindow, "each rank is fed all of its micro-batch", setWindow(input(p), 0, 1)),
    BAD(InputAxis, "input 0, placement: it names axis 2", input(p).mutable_axes(0)->set_axis(2)),
    BAD(InputsDiffer, "it varies along other axes than input 0", p.add_inputs()),
    BAD(InputsAlike, "is not micro_batch_size 1 x accumulation_steps 1 x 1", p.mutable_inputs(0)->clear_placement()),
};
INSTANTIATE_TEST_SUITE_P(Placements, PlanReaderRefusesPlacements, testing::ValuesIn(placementRules),
                         [](const auto &info) { return info.param.name; });

} // namespace
} // namespace ds::test
