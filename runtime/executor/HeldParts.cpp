//===- HeldParts.cpp - which elements of which variables a rank holds -----===//
#include "runtime/executor/HeldParts.h"

#include "core/DType.h"
#include "core/Shape.h"
#include "runtime/plan/Groups.h"
#include "runtime/plan/Ranks.h"
#include "runtime/plan/plan.pb.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace ds::runtime {
namespace {

/// The members' elements within elements [begin, end) of the bucket, which a buffer holds from its byte 0 on.
void addMembers(const plan::proto::Plan &plan, const plan::proto::Bucket &bucket, uint64_t begin, uint64_t end,
                uint32_t buffer, std::vector<HeldPart> &parts) {
  const auto elementBytes = uint64_t(byteSize(DType(bucket.dtype())));
  for (const plan::proto::BucketMember &member : bucket.members()) {
    const auto &shape = plan.variables(int(member.variable())).shape();
    const uint64_t from = std::max(begin, member.element());
    const uint64_t to = std::min(end, member.element() + uint64_t(elementCount({shape.data(), size_t(shape.size())})));
    if (from < to)
      parts.push_back({member.variable(), from - member.element(), to - from, buffer, (from - begin) * elementBytes});
  }
}

} // namespace

std::vector<HeldPart> heldParts(const plan::proto::Plan &plan, uint32_t rank) {
  std::vector<HeldPart> parts;
  const plan::proto::Role &role = plan::roleOfRank(plan, rank);
  for (int i = 0; i < role.buffers_size(); ++i) {
    const plan::proto::Buffer &buffer = role.buffers(i);
    if (buffer.has_variable()) {
      const DType dtype = DType(plan.variables(int(buffer.variable())).dtype());
      parts.push_back(
          {buffer.variable(), buffer.first_element(), buffer.bytes() / uint64_t(byteSize(dtype)), uint32_t(i), 0});
    } else if (buffer.has_bucket()) {
      const plan::proto::Bucket &bucket = plan.buckets(int(buffer.bucket()));
      const uint64_t slice = bucket.elements() / plan::groupSize(plan, bucket.communicator());
      const uint64_t begin = buffer.shard() ? slice * plan::groupCoordinate(plan, bucket.communicator(), rank) : 0;
      addMembers(plan, bucket, begin, buffer.shard() ? begin + slice : bucket.elements(), uint32_t(i), parts);
    }
  }
  return parts;
}

std::vector<std::vector<RankPart>> coverings(const plan::proto::Plan &plan, std::span<const uint32_t> ranks) {
  std::vector<std::vector<RankPart>> held(size_t(plan.variables_size()));
  for (uint32_t rank : ranks)
    for (const HeldPart &part : heldParts(plan, rank))
      held[part.variable].push_back({rank, part});
  for (size_t variable = 0; variable < held.size(); ++variable) {
    const auto elementBytes = uint64_t(byteSize(DType(plan.variables(int(variable)).dtype())));
    std::vector<RankPart> &parts = held[variable];
    std::stable_sort(parts.begin(), parts.end(),
                     [](const auto &a, const auto &b) { return a.part.first < b.part.first; });
    std::vector<RankPart> covering;
    uint64_t next = 0;
    for (RankPart candidate : parts) {
      HeldPart &part = candidate.part;
      if (part.first > next)
        break; // nobody holds what comes next
      if (part.first + part.count <= next)
        continue;
      part.byteOffset += (next - part.first) * elementBytes;
      part.count -= next - part.first;
      part.first = next;
      next += part.count;
      covering.push_back(candidate);
    }
    parts = covering;
  }
  return held;
}

uint64_t coveredElements(std::span<const RankPart> covering) {
  return covering.empty() ? 0 : covering.back().part.first + covering.back().part.count;
}

void readCovering(std::span<const RankPart> covering, uint64_t elementBytes,
                  const std::function<void(const RankPart &, uint64_t, std::span<std::byte>)> &read,
                  const std::function<void(std::span<const std::byte>)> &sink) {
  const uint64_t pieceElements = (uint64_t(1) << 20) / elementBytes;
  std::vector<std::byte> piece(std::min(pieceElements, coveredElements(covering)) * elementBytes);
  for (const RankPart &part : covering)
    for (uint64_t at = 0; at < part.part.count; at += pieceElements) {
      const auto bytes = std::span(piece).first(std::min(pieceElements, part.part.count - at) * elementBytes);
      read(part, at, bytes);
      sink(bytes);
    }
}

} // namespace ds::runtime
