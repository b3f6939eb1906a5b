//===- Placement.cpp - what of a tensor each rank holds -------------------===//
#include "runtime/plan/world/Placement.h"

#include "core/DType.h"
#include "core/Shape.h"
#include "runtime/plan/plan.pb.h"
#include "runtime/plan/world/Mesh.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace ds::plan {
namespace {

void append(std::vector<Run> &runs, Run run) {
  if (run.count > 0 && !runs.empty() && runs.back().first + runs.back().count == run.first)
    runs.back().count += run.count;
  else if (run.count > 0)
    runs.push_back(run);
}

/// What positions [first, first + count) of `runs` laid end to end are.
void appendPart(std::vector<Run> &result, std::span<const Run> runs, uint64_t first, uint64_t count) {
  uint64_t at = 0; // position of the run's first
  for (const Run &run : runs) {
    const uint64_t begin = std::max(first, at), end = std::min(first + count, at + run.count);
    if (begin < end)
      append(result, {run.first + (begin - at), end - begin});
    at += run.count;
  }
}

/// The indices of each dimension that a rank has.
std::vector<std::vector<Run>> indicesOf(const proto::World &world, const proto::Placement &placement,
                                        std::span<const int64_t> shape, uint32_t rank) {
  std::vector<std::vector<Run>> indices;
  for (const int64_t size : shape)
    indices.push_back({{0, uint64_t(size)}});
  for (const proto::AxisPlacement &one : placement.axes())
    if (const proto::Shard &shard = one.shard(); one.has_shard()) {
      const uint64_t step = axisCoordinate(world, one.axis(), rank) / shard.repeat();
      std::vector<Run> kept;
      for (const proto::Block &block : shard.blocks())
        appendPart(kept, indices[shard.dimension()], block.offset() + step * block.stride(), block.size());
      indices[shard.dimension()] = std::move(kept);
    }
  return indices;
}

const proto::Placement &placementIn(const proto::Plan &plan, const proto::Buffer &buffer) {
  return buffer.has_variable() ? plan.variables(int(buffer.variable())).placement()
                               : plan.buckets(int(buffer.bucket())).placement();
}

/// The elements of its piece that a rank keeps in a buffer.
Run keptIn(const proto::Plan &plan, const proto::Buffer &buffer, uint32_t rank) {
  Run kept = {0, heldElements(plan, buffer)};
  if (const proto::Placement &placement = placementIn(plan, buffer); placement.has_window())
    kept.first = Group(plan, placement.window().communicator()).coordinate(rank) * placement.window().stride();
  return kept;
}

std::span<const int64_t> shapeOf(const proto::Variable &variable) {
  return {variable.shape().data(), size_t(variable.shape_size())};
}

Group varyingGroup(const proto::Plan &plan, const proto::Variable &variable) {
  return {plan.world(), varyingAxes(plan.world(), variable.placement())};
}

} // namespace

std::vector<Run> runsOf(const proto::World &world, const proto::Placement &placement, std::span<const int64_t> shape,
                        uint32_t rank) {
  const auto indices = indicesOf(world, placement, shape, rank);
  std::vector<Run> runs = {{0, 1}}; // of what the dimensions so far make
  for (size_t dimension = 0; dimension < shape.size(); ++dimension) {
    const auto size = uint64_t(shape[dimension]);
    std::vector<Run> finer;
    for (const Run &run : runs)
      if (indices[dimension] == std::vector<Run>{{0, size}})
        append(finer, {run.first * size, run.count * size});
      else
        for (uint64_t i = run.first; i < run.first + run.count; ++i)
          for (const Run &part : indices[dimension])
            append(finer, {i * size + part.first, part.count});
    runs = std::move(finer);
  }
  return runs;
}

std::vector<Run> wholeElements(const proto::World &world, const proto::Placement &placement,
                               std::span<const int64_t> shape, uint32_t rank, uint64_t first, uint64_t count) {
  std::vector<Run> elements;
  appendPart(elements, runsOf(world, placement, shape, rank), first, count);
  return elements;
}

std::vector<Run> wholeElements(const proto::Plan &plan, const proto::Variable &variable, uint32_t rank, uint64_t first,
                               uint64_t count) {
  return wholeElements(plan.world(), variable.placement(), shapeOf(variable), rank, first, count);
}

uint64_t versionsOf(const proto::Plan &plan, const proto::Variable &variable) {
  return varyingGroup(plan, variable).size();
}

uint64_t versionOf(const proto::Plan &plan, const proto::Variable &variable, uint32_t rank) {
  return varyingGroup(plan, variable).coordinate(rank);
}

uint64_t partsOf(const proto::World &world, const proto::Placement &placement) {
  uint64_t parts = 1;
  for (const proto::AxisPlacement &one : placement.axes())
    if (one.has_shard())
      parts *= world.axes(int(one.axis())).size() / one.shard().repeat();
  return parts;
}

uint64_t partOf(const proto::World &world, const proto::Placement &placement, uint32_t rank) {
  uint64_t part = 0; // of the axes so far, the last one the fastest
  for (const proto::AxisPlacement &one : placement.axes())
    if (const uint64_t repeat = one.shard().repeat(); one.has_shard())
      part = part * (world.axes(int(one.axis())).size() / repeat) + axisCoordinate(world, one.axis(), rank) / repeat;
  return part;
}

std::vector<int64_t> pieceShape(const proto::Placement &placement, std::span<const int64_t> shape) {
  std::vector<int64_t> sizes(shape.begin(), shape.end());
  for (const proto::AxisPlacement &axis : placement.axes())
    if (axis.has_shard())
      cut(sizes, axis.shard());
  return sizes;
}

uint64_t elementsOf(const proto::Variable &variable) { return uint64_t(elementCount(shapeOf(variable))); }

uint64_t pieceElements(const proto::Variable &variable) {
  return uint64_t(*checkedElementCount(pieceShape(variable.placement(), shapeOf(variable))));
}

uint64_t heldElements(const proto::Plan &plan, const proto::Buffer &buffer) {
  if (const proto::Placement &placement = placementIn(plan, buffer); placement.has_window())
    return placement.window().count();
  return buffer.has_variable() ? pieceElements(plan.variables(int(buffer.variable())))
                               : plan.buckets(int(buffer.bucket())).elements();
}

void cut(std::vector<int64_t> &sizes, const proto::Shard &shard) {
  int64_t &size = sizes[shard.dimension()];
  size = 0;
  for (const proto::Block &block : shard.blocks())
    size += int64_t(block.size());
}

bool holdsWindow(const proto::Plan &plan, const proto::Buffer &buffer) {
  return buffer.has_bucket() && plan.buckets(int(buffer.bucket())).placement().has_window();
}

std::vector<Held> heldIn(const proto::Plan &plan, const proto::Buffer &buffer, uint32_t rank) {
  if (!buffer.has_variable() && !buffer.has_bucket())
    return {};
  const Run kept = keptIn(plan, buffer, rank);
  if (buffer.has_variable())
    return {{buffer.variable(), kept.first, kept.count, 0}};
  return membersWithin(plan, plan.buckets(int(buffer.bucket())), kept.first, kept.count);
}

std::vector<Held> heldTogether(const proto::Plan &plan, const proto::Buffer &buffer) {
  if (buffer.has_variable())
    return {{buffer.variable(), 0, pieceElements(plan.variables(int(buffer.variable()))), 0}};
  if (!buffer.has_bucket())
    return {};
  const proto::Bucket &bucket = plan.buckets(int(buffer.bucket()));
  return membersWithin(plan, bucket, 0, bucket.elements());
}

std::vector<Held> membersWithin(const proto::Plan &plan, const proto::Bucket &bucket, uint64_t first, uint64_t count) {
  const auto elementBytes = uint64_t(byteSize(DType(bucket.dtype())));
  std::vector<Held> held;
  for (const proto::BucketMember &member : bucket.members()) {
    const uint64_t elements = pieceElements(plan.variables(int(member.variable())));
    const uint64_t begin = std::max(first, member.element()),
                   end = std::min(first + count, member.element() + elements);
    if (begin < end)
      held.push_back({member.variable(), begin - member.element(), end - begin, (begin - first) * elementBytes});
  }
  return held;
}

uint32_t stateOf(const proto::Role &role, uint32_t buffer) {
  const proto::Buffer &written = role.buffers(int(buffer));
  return written.has_next_of() ? written.next_of() : buffer;
}

} // namespace ds::plan
