//===- TimeOrder.h - births and deaths in the order of time ---------------===//
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <tuple>
#include <vector>

namespace ds::scheduling {

/// A buffer comes to life or dies.
struct Change {
  int64_t time;
  bool born;
  size_t index;
};

/// Sorts by time; at one time the dying go first, since lives are half-open, and else what came first in `changes`.
/// Times of commands are dense, so that they are counted.
inline void sortByTime(std::vector<Change> &changes) {
  if (changes.empty())
    return;
  const auto [least, most] = std::minmax_element(changes.begin(), changes.end(),
                                                 [](const Change &a, const Change &b) { return a.time < b.time; });
  const int64_t begin = least->time, end = most->time + 1;
  constexpr int64_t sparse = 16; // instants a change from which on sorting is faster
  if ((end - begin) / sparse > int64_t(changes.size())) {
    std::stable_sort(changes.begin(), changes.end(), [](const Change &a, const Change &b) {
      return std::tie(a.time, a.born) < std::tie(b.time, b.born);
    });
    return;
  }
  const auto keyOf = [&](const Change &change) { return size_t(2 * (change.time - begin) + (change.born ? 1 : 0)); };
  std::vector<size_t> next(size_t(2 * (end - begin)) + 1); // by key: where the next one goes
  for (const Change &change : changes)
    ++next[keyOf(change) + 1];
  for (size_t key = 1; key < next.size(); ++key)
    next[key] += next[key - 1];
  std::vector<Change> sorted(changes.size());
  for (const Change &change : changes)
    sorted[next[keyOf(change)]++] = change;
  changes = std::move(sorted);
}

} // namespace ds::scheduling
