//===- Placement.cpp - what of a tensor each rank holds -------------------===//
#include "runtime/plan/world/Placement.h"

#include "core/DType.h"
#include "core/Shape.h"
#include "runtime/plan/plan.pb.h"
#include "runtime/plan/world/Mesh.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <numeric>
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

/// The elements that a rank keeps of its piece.
Run keptOf(const proto::Plan &plan, const proto::Placement &placement, uint64_t pieceElements, uint32_t rank) {
  if (!placement.has_window())
    return {0, pieceElements};
  const proto::Window &window = placement.window();
  return {Group(plan, window.communicator()).coordinate(rank) * window.stride(), window.count()};
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

std::vector<Run> wholeElements(const proto::Plan &plan, const proto::Variable &variable, uint32_t rank, uint64_t first,
                               uint64_t count) {
  const std::span<const int64_t> shape(variable.shape().data(), size_t(variable.shape_size()));
  std::vector<Run> part;
  appendPart(part, runsOf(plan.world(), variable.placement(), shape, rank), first, count);
  return part;
}

uint64_t versionsOf(const proto::Plan &plan, const proto::Variable &variable) {
  return varyingGroup(plan, variable).size();
}

uint64_t versionOf(const proto::Plan &plan, const proto::Variable &variable, uint32_t rank) {
  return varyingGroup(plan, variable).coordinate(rank);
}

uint64_t elementsOf(const proto::Variable &variable) {
  return uint64_t(elementCount({variable.shape().data(), size_t(variable.shape_size())}));
}

uint64_t pieceElements(const proto::Variable &variable) {
  std::vector<uint64_t> sizes(variable.shape().begin(), variable.shape().end());
  for (const proto::AxisPlacement &axis : variable.placement().axes())
    if (axis.has_shard())
      cut(sizes, axis.shard());
  return std::accumulate(sizes.begin(), sizes.end(), uint64_t(1), std::multiplies());
}

void cut(std::vector<uint64_t> &sizes, const proto::Shard &shard) {
  uint64_t &size = sizes[shard.dimension()];
  size = 0;
  for (const proto::Block &block : shard.blocks())
    size += block.size();
}

bool holdsWindow(const proto::Plan &plan, const proto::Buffer &buffer) {
  return buffer.has_bucket() && plan.buckets(int(buffer.bucket())).placement().has_window();
}

std::vector<Held> heldIn(const proto::Plan &plan, const proto::Buffer &buffer, uint32_t rank) {
  if (buffer.has_variable()) {
    const proto::Variable &variable = plan.variables(int(buffer.variable()));
    const Run kept = keptOf(plan, variable.placement(), pieceElements(variable), rank);
    return {{buffer.variable(), kept.first, kept.count, 0}};
  }
  if (!buffer.has_bucket())
    return {};
  const proto::Bucket &bucket = plan.buckets(int(buffer.bucket()));
  const Run kept = keptOf(plan, bucket.placement(), bucket.elements(), rank);
  return membersWithin(plan, bucket, kept.first, kept.count);
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
