//===- CheckPlacements.cpp - what each rank has of a tensor ----------------===//
#include "runtime/plan/format/PlanChecks.h"
#include "runtime/plan/plan.pb.h"
#include "runtime/plan/world/Mesh.h"
#include "runtime/plan/world/Placement.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace ds::plan {
namespace {

using Sizes = std::vector<int64_t>; // of dimensions
using Wide = unsigned __int128;     // sums and products of any two fields

constexpr uint64_t mostBlocks = uint64_t(1) << 16; // of a shard, of all ranks together

/// Parts of all ranks, in elements of the dimension: [first, last) of each block.
std::vector<std::pair<uint64_t, uint64_t>> partsOf(const proto::Shard &shard, uint64_t parts, uint64_t size,
                                                   const std::string &place) {
  std::vector<std::pair<uint64_t, uint64_t>> ranges;
  for (int b = 0; b < shard.blocks_size(); ++b)
    for (uint64_t part = 0; part < parts; ++part) {
      const proto::Block &block = shard.blocks(b);
      const Wide begin = Wide(block.offset()) + Wide(part) * block.stride();
      if (block.size() == 0 || begin + block.size() > size)
        refuse(place, "block " + std::to_string(b) + " of part " + std::to_string(part) + " is empty or passes the " +
                          std::to_string(size) + " elements of dimension " + std::to_string(shard.dimension()));
      ranges.emplace_back(uint64_t(begin), uint64_t(begin) + block.size());
    }
  return ranges;
}

/// The parts of a dimension make it whole, each element once.
void checkShard(const proto::Shard &shard, uint64_t ranks, const Sizes &sizes, const std::string &place) {
  checkIndex(shard.dimension(), int64_t(sizes.size()), "dimension", place);
  if (shard.repeat() == 0 || ranks % shard.repeat() != 0)
    refuse(place, std::to_string(shard.repeat()) + " neighbours have each part, which is no divisor of the axis' " +
                      std::to_string(ranks) + " ranks");
  const uint64_t parts = ranks / shard.repeat(), size = uint64_t(sizes[shard.dimension()]);
  if (size == 0)
    refuse(place, "dimension " + std::to_string(shard.dimension()) + " has no elements, so no rank has a part of it");
  if (uint64_t(shard.blocks_size()) > mostBlocks / parts)
    refuseSize(place, std::to_string(shard.blocks_size()) + " blocks of each of " + std::to_string(parts) +
                          " parts are more than " + std::to_string(mostBlocks));
  std::vector<std::pair<uint64_t, uint64_t>> ranges = partsOf(shard, parts, size, place);
  ranges.emplace_back(size, size);
  std::ranges::sort(ranges);
  uint64_t end = 0;
  for (const auto &[first, last] : ranges) {
    if (first != end)
      refuse(place, "elements " + std::to_string(std::min(first, end)) + " to " +
                        std::to_string((first > end ? first : std::min(end, last)) - 1) + " of dimension " +
                        std::to_string(shard.dimension()) +
                        (first > end ? " belong to no part" : " belong to two parts"));
    end = last;
  }
}

void checkAxis(const proto::AxisPlacement &axis, uint64_t ranks, const Sizes &sizes, const std::string &place) {
  switch (axis.how_case()) {
  case proto::AxisPlacement::kShard:
    return checkShard(axis.shard(), ranks, sizes, place);
  case proto::AxisPlacement::kPartial:
    if (axis.partial() < proto::AxisPlacement::SUM || axis.partial() > proto::AxisPlacement::MIN)
      refuse(place, "it is partial, but there is no kind " + std::to_string(axis.partial()) +
                        " of reduction: it must be SUM, MAX or MIN");
    return;
  case proto::AxisPlacement::kVaries:
    if (!axis.varies())
      refuse(place, "varies is false; an axis along which all ranks have the same is not named");
    return;
  case proto::AxisPlacement::HOW_NOT_SET:
    refuse(place, "it says neither shard nor partial nor varies");
  }
}

/// Axes of the mesh, each named once. Where two cut one dimension, the second cuts what the first has left.
void checkAxes(const proto::World &world, const proto::Placement &placement, Sizes sizes, const std::string &place) {
  for (int i = 0; i < placement.axes_size(); ++i) {
    const proto::AxisPlacement &axis = placement.axes(i);
    checkIndex(axis.axis(), world.axes_size(), "axis", place);
    const std::string &name = world.axes(int(axis.axis())).name();
    if (world.axes(int(axis.axis())).size() == 1)
      refuse(place, "it names axis " + name + ", which has one rank: there is nothing to say along it");
    if (i > 0 && axis.axis() <= placement.axes(i - 1).axis())
      refuse(place, "it names axis " + name +
                        (axis.axis() == placement.axes(i - 1).axis() ? " twice" : " behind a later one of the mesh"));
    checkAxis(axis, world.axes(int(axis.axis())).size(), sizes, place + ", axis " + name);
    if (axis.has_shard())
      cut(sizes, axis.shard());
  }
}

/// A piece of few runs is moved and saved in as many parts.
void checkRuns(const proto::Placement &placement, const Sizes &shape, const std::string &place) {
  constexpr uint64_t most = uint64_t(1) << 22;
  uint64_t runs = 1;
  for (const proto::AxisPlacement &axis : placement.axes())
    if (axis.has_shard()) {
      Wide before = uint64_t(axis.shard().blocks_size());
      for (uint32_t d = 0; d < axis.shard().dimension(); ++d)
        before *= uint64_t(shape[d]);
      runs = uint64_t(std::max<Wide>(runs, std::min<Wide>(before, most + 1)));
    }
  if (runs > most)
    refuse(place, "a rank's piece lies in more than " + std::to_string(most) + " parts of the whole");
}

/// The windows of a communicator's ranks make the piece whole, each element once.
void checkWindow(const proto::Plan &plan, const proto::Placement &placement, uint64_t piece, const std::string &place) {
  if (!placement.has_window())
    return;
  const proto::Window &window = placement.window();
  const std::string here = place + ", window";
  checkIndex(window.communicator(), plan.communicators_size(), "communicator", here);
  const uint64_t ranks = Group(plan, window.communicator()).size();
  const std::string sizes = std::to_string(window.count()) + " elements every " + std::to_string(window.stride());
  if (window.stride() != window.count())
    refuse(here, sizes + (window.stride() < window.count() ? " overlap" : " leave gaps") + "; both must be the same");
  const Wide end = Wide(window.count()) * ranks;
  if (end != piece)
    refuse(here, std::to_string(window.count()) + " elements on each of " + std::to_string(ranks) + " ranks " +
                     (end > piece ? "pass" : "leave some of") + " the piece's " + std::to_string(piece));
}

} // namespace

void checkPlacement(const proto::World &world, const proto::Placement &placement, std::span<const int64_t> shape,
                    const std::string &place) {
  const Sizes sizes(shape.begin(), shape.end());
  checkAxes(world, placement, sizes, place);
  checkRuns(placement, sizes, place);
}

void checkPlacement(const proto::Plan &plan, const proto::Variable &variable, const std::string &place) {
  checkPlacement(plan.world(), variable.placement(), {variable.shape().data(), size_t(variable.shape_size())},
                 place + ", placement");
  if (variable.placement().has_window())
    refuse(place, "its placement has a window, but what ranks share out flat lies in a bucket");
  if (std::ranges::any_of(variable.placement().axes(), &proto::AxisPlacement::has_partial))
    refuse(place, "its placement says that ranks have terms of it, but nothing adds up what outlives a step");
}

void checkPlacement(const proto::Plan &plan, const proto::Bucket &bucket, const std::string &place) {
  if (bucket.placement().axes_size() > 0)
    refuse(place, "its placement names axes, but along them its variables are what their own placements say");
  checkWindow(plan, bucket.placement(), bucket.elements(), place + ", placement");
}

void checkInputPlacements(const proto::Plan &plan) {
  for (int i = 0; i < plan.inputs_size(); ++i) {
    const proto::Input &input = plan.inputs(i);
    const std::string place = describe("input", i, "") + ", placement"; // names are checked later
    const auto &axes = input.placement().axes();
    if (input.placement().has_window() || !std::ranges::all_of(axes, &proto::AxisPlacement::varies))
      refuse(place, "each rank is fed all of its micro-batch, so it can say no more than axes along which that varies");
    checkAxes(plan.world(), input.placement(), {}, place);
    if (!std::ranges::equal(axes, plan.inputs(0).placement().axes(), {}, &proto::AxisPlacement::axis,
                            &proto::AxisPlacement::axis))
      refuse(place, "it varies along other axes than input 0, but micro-batches are dealt out with all their inputs");
  }
}

} // namespace ds::plan
