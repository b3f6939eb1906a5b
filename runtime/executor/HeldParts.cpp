//===- HeldParts.cpp - which elements of which variables a rank holds -----===//
#include "runtime/executor/HeldParts.h"

#include "core/DType.h"
#include "runtime/plan/plan.pb.h"
#include "runtime/plan/world/Mesh.h"
#include "runtime/plan/world/Placement.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <span>
#include <utility>
#include <vector>

namespace ds::runtime {

std::vector<HeldPart> heldOfPieces(const plan::proto::Plan &plan, uint32_t rank) {
  std::vector<HeldPart> parts;
  const plan::proto::Role &role = plan::roleOfRank(plan, rank);
  for (int i = 0; i < role.buffers_size(); ++i)
    for (const plan::Held &held : plan::heldIn(plan, role.buffers(i), rank))
      parts.push_back({held.variable, held.first, held.count, uint32_t(i), held.byte});
  return parts;
}

/// The runs of the whole variable that a part of a rank's piece is.
static std::vector<HeldPart> runsOfPart(const plan::proto::Plan &plan, uint32_t rank, HeldPart part) {
  std::vector<HeldPart> runs;
  const plan::proto::Variable &variable = plan.variables(int(part.variable));
  for (const plan::Run &run : plan::wholeElements(plan, variable, rank, part.first, part.count)) {
    runs.push_back({part.variable, run.first, run.count, part.buffer, part.byteOffset});
    part.byteOffset += run.count * uint64_t(byteSize(DType(variable.dtype())));
  }
  return runs;
}

std::vector<HeldPart> heldParts(const plan::proto::Plan &plan, uint32_t rank) {
  std::vector<HeldPart> parts;
  for (const HeldPart &part : heldOfPieces(plan, rank))
    std::ranges::copy(runsOfPart(plan, rank, part), std::back_inserter(parts));
  return parts;
}

std::vector<RankPart> covering(std::vector<RankPart> parts, uint64_t elementBytes) {
  std::ranges::stable_sort(parts, {}, [](const RankPart &one) { return one.part.first; });
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
  return covering;
}

Coverings::Coverings(const plan::proto::Plan &plan, std::span<const uint32_t> ranks)
    : plan_(plan), held_(size_t(plan.variables_size())) {
  for (const uint32_t rank : ranks)
    for (const HeldPart &part : heldOfPieces(plan, rank))
      held_[part.variable].push_back({rank, part});
}

std::vector<RankPart> Coverings::of(uint32_t variable) const {
  std::vector<RankPart> runs;
  for (const RankPart &held : held_[variable])
    for (const HeldPart &run : runsOfPart(plan_, held.rank, held.part))
      runs.push_back({held.rank, run});
  return covering(std::move(runs), uint64_t(byteSize(DType(plan_.variables(int(variable)).dtype()))));
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
