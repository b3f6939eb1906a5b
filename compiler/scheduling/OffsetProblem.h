//===- OffsetProblem.h - a place in one arena for every buffer ------------===//
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace ds::scheduling {

/// Gives each buffer an offset in one arena such that no two buffers that live at the same time overlap. Dynamic
/// storage allocation; cf. MiniMalloc (Moffitt, ASPLOS 2023, doi 10.1145/3623278.3624752).
struct OffsetProblem {
  struct Buffer {
    int64_t bytes;      // 0 is allowed and takes no room
    int64_t begin, end; // live in [begin, end), in queue order; begin < end
  };
  std::vector<Buffer> buffers;
  int64_t alignment = 64;                                 // bytes; a power of two; of every offset
  int64_t capacity = std::numeric_limits<int64_t>::max(); // bytes

  /// Why the input makes no sense, or nothing. Run before any algorithm.
  std::optional<std::string> check() const;
  /// Why `offsets` is wrong, or nothing: one for each buffer, aligned, within capacity, no two live buffers overlap.
  /// Knows no algorithm.
  std::optional<std::string> verify(std::span<const int64_t> offsets) const;
  /// Most bytes live at once: no arena can be smaller.
  int64_t lowerBound() const;
  /// Of each buffer, the most bytes that live at some time of its life.
  std::vector<int64_t> peakDuringLife() const;
  /// Where the last buffer ends, in bytes: the size of the arena that `offsets` needs.
  int64_t arenaBytes(std::span<const int64_t> offsets) const;
};

/// Each buffer of `order`, which names every buffer once, at the lowest offset where nothing before it that lives with
/// it lies; ignores the capacity. Needs check() to have passed.
std::vector<int64_t> assignInOrder(const OffsetProblem &problem, std::span<const size_t> order);

/// Largest buffer first, each at the lowest offset where nothing that lives with it lies; ignores the capacity. The
/// same problem gives the same offsets. Needs check() to have passed.
std::vector<int64_t> assignFirstFit(const OffsetProblem &problem);

/// Longest life first, and what comes to lie too high earlier the next time, for a few rounds or until the arena is at
/// most `enough` bytes; ignores the capacity. The same problem gives the same offsets. Needs check() to have passed.
std::vector<int64_t> assignPromoted(const OffsetProblem &problem, int64_t enough = 0);

/// Offsets within the capacity, by a search of at most `nodes` placings; nothing if it found none. The same problem
/// gives the same offsets, on any machine. A node costs time and memory in proportion to the buffers, and as many nodes
/// are on the stack at once. Needs check() to have passed.
std::optional<std::vector<int64_t>> searchMonotone(const OffsetProblem &problem, int64_t nodes);

/// The best of first fit and, where that stays 0.5 % above lowerBound(), the promoted orders; where these stay 1 %
/// above it and buffers are few, of some short searches. An arena of at most `enough` bytes is good enough. Ignores the
/// capacity. Needs check() to have passed.
std::vector<int64_t> assignOffsets(const OffsetProblem &problem, int64_t enough = 0);

} // namespace ds::scheduling
