//===- RepeatedBlocks.h - what a model consists of several times ----------===//
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace ds::scheduling {

/// Consecutive equal blocks: block i lies between boundaries first + i * period and first + (i + 1) * period.
struct RepeatedBlocks {
  size_t first, period, blocks; // indices into the boundaries; blocks >= 2

  size_t end() const { return first + period * blocks; }
  bool operator==(const RepeatedBlocks &) const = default;
};

/// Runs of equal blocks in a sequence of units that `boundaries` (positions, ascending) cuts into segments; two
/// segments are equal if their units' signatures are. The longest runs, of the shortest blocks; no two overlap; in
/// ascending order. The first block of a run may begin with units of its own, and the last end with some: what prepares
/// the blocks and what follows them.
std::vector<RepeatedBlocks> findRepeatedBlocks(std::span<const uint64_t> signatures,
                                               std::span<const int64_t> boundaries);

} // namespace ds::scheduling
