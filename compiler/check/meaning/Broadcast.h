//===- Broadcast.h - how the elements of a tensor repeat where it broadcasts --===//
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace ds::check {

/// `count` neighbours along a tensor, or `count` times the same.
struct Run {
  uint64_t count;
  bool repeats;
  bool operator==(const Run &) const = default;
};

/// Outermost first, no two of one kind beside each other, none of one element: the same for all shapes that differ by a
/// reshape. A bias of 4 that is added to each row of [3, 4] is {3 times, 4}; one that is added to each column of [4, 3]
/// is {4, 3 times}. Empty for a tensor of one element that stays one.
using Runs = std::vector<Run>;

/// How a tensor of shape `from` repeats in `to`, as in NumPy; nothing where it does not broadcast to that.
std::optional<Runs> runsOf(std::span<const int64_t> from, std::span<const int64_t> to);

/// Whether every element is there once.
bool isWhole(const Runs &runs);

/// How elements repeat that repeat by `inner` and then, as one tensor, by `outer`; nothing where no runs say it.
std::optional<Runs> composed(const Runs &inner, const Runs &outer);

} // namespace ds::check
