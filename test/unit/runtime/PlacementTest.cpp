//===- PlacementTest.cpp - what of a tensor each rank holds ---------------===//
//
// Placements are drawn, and compared with a count of elements one by one.
//
//===----------------------------------------------------------------------===//
#include "runtime/plan/world/Placement.h"
#include "runtime/plan/world/Mesh.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <random>
#include <utility>
#include <vector>

namespace ds::test {
namespace {

namespace proto = plan::proto;
using proto::AxisPlacement;
using proto::Placement;
using proto::Shard;

struct Drawn {
  proto::Plan plan;
  Placement placement;
  std::vector<int64_t> shape;
};

class Draws {
public:
  explicit Draws(uint32_t seed) : random_(seed) {}

  uint64_t below(uint64_t end) { return std::uniform_int_distribution<uint64_t>(0, end - 1)(random_); }
  uint64_t divisorOf(uint64_t number) {
    std::vector<uint64_t> divisors;
    for (uint64_t i = 1; i <= number; ++i)
      if (number % i == 0)
        divisors.push_back(i);
    return divisors[below(divisors.size())];
  }

  proto::Plan world() {
    proto::Plan plan;
    for (const char *name : {"pipe", "data", "tensor"}) {
      proto::Axis &axis = *plan.mutable_world()->add_axes();
      axis.set_name(name);
      axis.set_size(uint32_t(1 + below(4)));
    }
    return plan;
  }

  /// From what a rank has to the whole: the last cut is undone first.
  Drawn placement() {
    Drawn drawn{.plan = world(), .placement = {}, .shape = {}};
    for (uint64_t i = below(4); i > 0; --i)
      drawn.shape.push_back(int64_t(1 + below(4)));
    for (uint32_t axis = 3; axis-- > 0;) {
      const uint32_t ranks = drawn.plan.world().axes(int(axis)).size();
      const uint64_t how = below(5);
      if (ranks == 1 || how == 0)
        continue;
      if (how > 2 && drawn.shape.empty())
        continue;
      AxisPlacement &one = *drawn.placement.add_axes();
      one.set_axis(axis);
      if (how == 1)
        one.set_varies(true);
      else if (how == 2)
        one.set_partial(AxisPlacement::SUM);
      else
        *one.mutable_shard() = shard(ranks, drawn.shape);
    }
    std::ranges::reverse(*drawn.placement.mutable_axes());
    return drawn;
  }

private:
  /// Several blocks, each cut into equal parts.
  Shard shard(uint64_t ranks, std::vector<int64_t> &shape) {
    Shard shard;
    shard.set_dimension(uint32_t(below(shape.size())));
    shard.set_repeat(divisorOf(ranks));
    const uint64_t parts = ranks / shard.repeat(), local = uint64_t(shape[shard.dimension()]);
    const uint64_t size = divisorOf(local);
    for (uint64_t i = 0; i < local / size; ++i) {
      proto::Block &block = *shard.add_blocks();
      block.set_offset(i * size * parts);
      block.set_stride(size);
      block.set_size(size);
    }
    std::ranges::shuffle(*shard.mutable_blocks(), random_);
    shape[shard.dimension()] *= int64_t(parts);
    return shard;
  }

  std::mt19937 random_;
};

/// Where a rank has an index of a dimension, if it does.
std::optional<uint64_t> localIndex(const Drawn &drawn, uint32_t rank, uint32_t dimension, uint64_t index) {
  for (const AxisPlacement &one : drawn.placement.axes()) {
    const Shard &shard = one.shard();
    if (!one.has_shard() || shard.dimension() != dimension)
      continue;
    const uint64_t step = plan::axisCoordinate(drawn.plan.world(), one.axis(), rank) / shard.repeat();
    std::optional<uint64_t> found;
    uint64_t before = 0;
    for (const proto::Block &block : shard.blocks()) {
      const uint64_t begin = block.offset() + step * block.stride();
      if (index >= begin && index < begin + block.size())
        found = before + (index - begin);
      before += block.size();
    }
    if (!found)
      return std::nullopt;
    index = *found;
  }
  return index;
}

/// The elements of the whole that a rank has, sorted by where it has them.
std::vector<uint64_t> elementsOneByOne(const Drawn &drawn, uint32_t rank) {
  uint64_t elements = 1;
  for (const int64_t size : drawn.shape)
    elements *= uint64_t(size);
  std::vector<std::pair<std::vector<uint64_t>, uint64_t>> held; // by indices within the piece
  for (uint64_t element = 0; element < elements; ++element) {
    std::vector<uint64_t> local(drawn.shape.size());
    uint64_t rest = element;
    bool has = true;
    for (size_t dimension = drawn.shape.size(); dimension-- > 0 && has; rest /= uint64_t(drawn.shape[dimension])) {
      const auto index = localIndex(drawn, rank, uint32_t(dimension), rest % uint64_t(drawn.shape[dimension]));
      has = index.has_value();
      local[dimension] = index.value_or(0);
    }
    if (has)
      held.emplace_back(local, element);
  }
  std::ranges::sort(held);
  std::vector<uint64_t> sorted;
  for (const auto &[local, element] : held)
    sorted.push_back(element);
  return sorted;
}

/// Ranks that have each element: all that differ along an axis that does not cut, and `repeat` along one that does.
uint64_t timesHeld(const Drawn &drawn) {
  uint64_t times = plan::worldSize(drawn.plan);
  for (const AxisPlacement &one : drawn.placement.axes())
    if (one.has_shard())
      times = times / drawn.plan.world().axes(int(one.axis())).size() * one.shard().repeat();
  return times;
}

TEST(Placement, RunsAreWhatACountOfElementsFinds) {
  Draws draws(1);
  for (int i = 0; i < 2000; ++i) {
    const Drawn drawn = draws.placement();
    std::vector<uint64_t> times;
    for (uint32_t rank = 0; rank < plan::worldSize(drawn.plan); ++rank) {
      std::vector<uint64_t> elements;
      for (const plan::Run &run : plan::runsOf(drawn.plan.world(), drawn.placement, drawn.shape, rank))
        for (uint64_t element = run.first; element < run.first + run.count; ++element)
          elements.push_back(element);
      ASSERT_EQ(elements, elementsOneByOne(drawn, rank)) << "placement " << i << ", rank " << rank;
      for (const uint64_t element : elements) {
        times.resize(std::max<size_t>(times.size(), element + 1));
        ++times[element];
      }
    }
    EXPECT_EQ(times, std::vector(times.size(), timesHeld(drawn))) << "placement " << i;
  }
}

/// A bucket of members apart from each other, cut over some axes.
proto::Plan drawBucket(Draws &draws) {
  proto::Plan plan = draws.world();
  proto::Communicator &communicator = *plan.add_communicators();
  for (uint32_t axis = 0; axis < 3; ++axis)
    if (draws.below(2) == 1)
      communicator.add_axes(axis);
  proto::Bucket &bucket = *plan.add_buckets();
  bucket.set_dtype(proto::DTYPE_F32);
  uint64_t end = 0;
  for (uint32_t i = 0; i < 1 + draws.below(4); ++i) {
    proto::Variable &variable = *plan.add_variables();
    variable.set_dtype(proto::DTYPE_F32);
    variable.add_shape(int64_t(1 + draws.below(9)));
    proto::BucketMember &member = *bucket.add_members();
    member.set_variable(i);
    member.set_element(end + draws.below(3));
    end = member.element() + uint64_t(variable.shape(0));
  }
  const uint64_t ranks = plan::Group(plan, 0).size();
  bucket.set_elements((end + ranks - 1) / ranks * ranks);
  bucket.mutable_placement()->mutable_window()->set_stride(bucket.elements() / ranks);
  bucket.mutable_placement()->mutable_window()->set_count(bucket.elements() / ranks);
  return plan;
}

TEST(Placement, WindowsOfABucketTileIt) {
  Draws draws(2);
  for (int i = 0; i < 2000; ++i) {
    const proto::Plan plan = drawBucket(draws);
    proto::Buffer buffer;
    buffer.set_bucket(0);
    const plan::Group group(plan, 0);
    const uint64_t slice = plan.buckets(0).elements() / group.size();
    std::vector<std::vector<int>> times; // by variable and element
    for (const plan::Held &held : plan::heldTogether(plan, buffer))
      times.emplace_back(held.count);
    for (const uint32_t rank : group.ranks(uint32_t(draws.below(plan::worldSize(plan)))))
      for (const plan::Held &held : plan::heldIn(plan, buffer, rank))
        for (uint64_t k = 0; k < held.count; ++k) {
          ++times[held.variable][held.first + k];
          EXPECT_EQ(group.coordinate(rank) * slice + held.byte / 4 + k, // where it lies in the bucket
                    plan.buckets(0).members(int(held.variable)).element() + held.first + k);
        }
    for (const std::vector<int> &one : times)
      EXPECT_EQ(one, std::vector(one.size(), 1)) << "bucket " << i;
  }
}

TEST(Placement, VersionsAreCountedAlongTheAxesOfWhatVaries) {
  proto::Plan plan;
  for (auto [name, size] : {std::pair{"data", 3}, std::pair{"expert", 1}, std::pair{"tensor", 2}}) {
    proto::Axis &axis = *plan.mutable_world()->add_axes();
    axis.set_name(name);
    axis.set_size(uint32_t(size));
  }
  proto::Variable variable;
  EXPECT_EQ(plan::versionsOf(plan, variable), 1u);
  EXPECT_EQ(plan::versionOf(plan, variable, 5), 0u);
  for (const uint32_t axis : {0, 1}) {
    AxisPlacement &placement = *variable.mutable_placement()->add_axes();
    placement.set_axis(axis);
    placement.set_varies(true);
  }
  EXPECT_EQ(plan::versionsOf(plan, variable), 3u);
  EXPECT_EQ(plan::versionOf(plan, variable, 5), 2u);
}

/// Halves of rows, and of such a half laid flat, thirds.
TEST(Placement, AVariableMayHaveAWindowOfItsOwn) {
  proto::Plan plan;
  for (auto [name, size] : {std::pair{"data", 3}, std::pair{"tensor", 2}}) {
    proto::Axis &axis = *plan.mutable_world()->add_axes();
    axis.set_name(name);
    axis.set_size(uint32_t(size));
  }
  plan.add_communicators()->add_axes(0);
  proto::Variable &variable = *plan.add_variables();
  variable.set_dtype(proto::DTYPE_F32);
  variable.add_shape(3);
  variable.add_shape(4);
  AxisPlacement &half = *variable.mutable_placement()->add_axes();
  half.set_axis(1);
  half.mutable_shard()->set_dimension(1);
  half.mutable_shard()->set_repeat(1);
  half.mutable_shard()->add_blocks()->set_size(2);
  half.mutable_shard()->mutable_blocks(0)->set_stride(2);
  variable.mutable_placement()->mutable_window()->set_stride(2);
  variable.mutable_placement()->mutable_window()->set_count(2);
  proto::Buffer buffer;
  buffer.set_variable(0);
  const std::vector<plan::Held> held = plan::heldIn(plan, buffer, 3); // (1, 1): the second row's second half
  ASSERT_EQ(held.size(), 1u);
  EXPECT_EQ(held[0].first, 2u);
  EXPECT_EQ(held[0].count, 2u);
  EXPECT_EQ(plan::wholeElements(plan, variable, 3, held[0].first, held[0].count), (std::vector<plan::Run>{{6, 2}}));
}

TEST(Placement, PartsOfAWholeVariableAreThemselves) {
  proto::Plan plan;
  proto::Variable variable;
  variable.add_shape(4);
  variable.add_shape(5);
  EXPECT_EQ(plan::wholeElements(plan, variable, 0, 3, 9), (std::vector<plan::Run>{{3, 9}}));
  EXPECT_EQ(plan::wholeElements(plan, variable, 0, 18, 9), (std::vector<plan::Run>{{18, 2}})); // no more than there are
}

} // namespace
} // namespace ds::test
