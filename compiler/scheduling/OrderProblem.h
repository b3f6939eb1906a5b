//===- OrderProblem.h - an order of commands in which few bytes live ------===//
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace ds::scheduling {

/// Puts commands of one queue into an order in which the most bytes that live at once are few. A buffer lives from the
/// first command that uses it to the last one. Commands 0, 1, 2 ... are in an order that works. Finding the best one is
/// NP-hard (Sethi, 1975: register allocation of a graph).
struct OrderProblem {
  struct Buffer {
    int64_t bytes;
    std::vector<int64_t> users; // commands, ascending
    bool before, after;         // lives before the first command, after the last one
  };
  int64_t commands = 0;
  std::vector<std::pair<int64_t, int64_t>> edges; // the first must run before the second
  std::vector<Buffer> buffers;

  /// Why the input makes no sense, or nothing. Run before any algorithm.
  std::optional<std::string> check() const;
  /// Why `order` is wrong, or nothing: each command once, and every edge respected. Knows no algorithm.
  std::optional<std::string> verify(std::span<const int64_t> order) const;
  /// Most bytes that live at once if the commands run in this order; 0 without commands.
  int64_t peakBytes(std::span<const int64_t> order) const;
};

/// An order whose peak is at most that of 0, 1, 2 ..., which it keeps wherever a change does not lower the peak. The
/// same problem gives the same order. Needs check() to have passed.
std::vector<int64_t> orderForMemory(const OrderProblem &problem);

} // namespace ds::scheduling
