//===- HeldParts.h - which elements of which variables a rank holds -------===//
#pragma once

#include "runtime/plan/plan.pb.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace ds::runtime {

/// Elements [first, first + count) of a variable lie in a PLAN buffer from `byteOffset` on. They are counted in the
/// whole variable, or, where a function says so, in the rank's piece of it (runtime/plan/world/Placement.h).
struct HeldPart {
  uint32_t variable;
  uint64_t first, count;
  uint32_t buffer;
  uint64_t byteOffset;
};

/// A part that is taken from one rank.
struct RankPart {
  uint32_t rank;
  HeldPart part;
};

/// Returns all that a rank holds, in the order of its buffers and, within one, of addresses.
std::vector<HeldPart> heldParts(const plan::proto::Plan &plan, uint32_t rank);

/// As heldParts, counted in the rank's pieces: a piece may be many elements here and there of the whole.
std::vector<HeldPart> heldOfPieces(const plan::proto::Plan &plan, uint32_t rank);

/// Returns elements in order and once: as many from the beginning on as the parts have, from the first of them where
/// several have the same.
std::vector<RankPart> covering(std::vector<RankPart> parts, uint64_t elementBytes);

/// Which of some ranks hold what of each variable. Pieces are kept, not the many runs of the whole that a piece may be.
class Coverings {
public:
  /// The plan outlives it.
  Coverings(const plan::proto::Plan &plan, std::span<const uint32_t> ranks);

  /// Returns a variable's elements in order and once: as many from the beginning on as the ranks hold between them,
  /// from the lower rank where several hold the same.
  std::vector<RankPart> of(uint32_t variable) const;

private:
  const plan::proto::Plan &plan_;
  std::vector<std::vector<RankPart>> held_; // by variable, counted in pieces
};

/// How many elements from the beginning on a covering has.
uint64_t coveredElements(std::span<const RankPart> covering);

/// Goes over a covering in pieces of at most 1 MiB: `read` fills the bytes with elements of the part (its second
/// argument counts within the part), `sink` is handed them.
void readCovering(std::span<const RankPart> covering, uint64_t elementBytes,
                  const std::function<void(const RankPart &, uint64_t, std::span<std::byte>)> &read,
                  const std::function<void(std::span<const std::byte>)> &sink);

} // namespace ds::runtime
