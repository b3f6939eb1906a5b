//===- OffsetProblem.cpp - what makes an assignment of offsets right ------===//
#include "compiler/scheduling/OffsetProblem.h"

#include "compiler/scheduling/TimeOrder.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace ds::scheduling {
namespace {

std::string text(int64_t number) { return std::to_string(number); }

std::string describe(const OffsetProblem &problem, size_t index) {
  const OffsetProblem::Buffer &buffer = problem.buffers[index];
  return "buffer " + text(int64_t(index)) + " (" + text(buffer.bytes) + " bytes, live [" + text(buffer.begin) + ", " +
         text(buffer.end) + "))";
}

/// Changes of all buffers that take room, in time order.
std::vector<Change> changesInTimeOrder(const OffsetProblem &problem) {
  std::vector<Change> changes;
  changes.reserve(2 * problem.buffers.size());
  for (size_t i = 0; i < problem.buffers.size(); ++i) {
    if (problem.buffers[i].bytes == 0)
      continue;
    changes.push_back({problem.buffers[i].begin, true, i});
    changes.push_back({problem.buffers[i].end, false, i});
  }
  sortByTime(changes);
  return changes;
}

} // namespace

std::optional<std::string> OffsetProblem::check() const {
  if (alignment <= 0 || !std::has_single_bit(uint64_t(alignment)))
    return "alignment " + text(alignment) + " is not a power of two";
  if (capacity < 0)
    return "capacity " + text(capacity) + " is negative";
  // Algorithms may add up every aligned size without overflow.
  int64_t room = std::numeric_limits<int64_t>::max() / 2;
  for (size_t i = 0; i < buffers.size(); ++i) {
    const Buffer &buffer = buffers[i];
    if (buffer.bytes < 0)
      return describe(*this, i) + " has a negative size";
    if (buffer.begin >= buffer.end)
      return describe(*this, i) + " never lives: its begin must lie before its end";
    if (buffer.bytes > capacity)
      return describe(*this, i) + " alone is larger than the capacity of " + text(capacity) + " bytes";
    if (buffer.bytes > room - alignment)
      return "the buffers up to " + text(int64_t(i)) + " together are larger than any address space";
    room -= buffer.bytes + alignment;
  }
  return std::nullopt;
}

std::optional<std::string> OffsetProblem::verify(std::span<const int64_t> offsets) const {
  if (offsets.size() != buffers.size())
    return text(int64_t(offsets.size())) + " offsets for " + text(int64_t(buffers.size())) + " buffers";
  for (size_t i = 0; i < buffers.size(); ++i) {
    const int64_t offset = offsets[i];
    if (offset < 0 || offset % alignment != 0)
      return describe(*this, i) + " lies at offset " + text(offset) + ", which is not a multiple of " + text(alignment);
    if (buffers[i].bytes > capacity || offset > capacity - buffers[i].bytes)
      return describe(*this, i) + " at offset " + text(offset) + " ends above the capacity of " + text(capacity) +
             " bytes";
  }
  // At any time the live buffers are kept in address order; they are disjoint if every newcomer is clear of its two
  // neighbours.
  std::set<std::pair<int64_t, size_t>> live;
  const auto overlap = [&](size_t below, size_t above) {
    return offsets[above] < offsets[below] + buffers[below].bytes;
  };
  const auto complain = [&](size_t a, size_t b) {
    return describe(*this, std::min(a, b)) + " at offset " + text(offsets[std::min(a, b)]) + " overlaps " +
           describe(*this, std::max(a, b)) + " at offset " + text(offsets[std::max(a, b)]);
  };
  for (const Change &change : changesInTimeOrder(*this)) {
    const std::pair<int64_t, size_t> key{offsets[change.index], change.index};
    if (!change.born) {
      live.erase(key);
      continue;
    }
    const auto place = live.insert(key).first;
    if (place != live.begin() && overlap(std::prev(place)->second, change.index))
      return complain(std::prev(place)->second, change.index);
    if (std::next(place) != live.end() && overlap(change.index, std::next(place)->second))
      return complain(change.index, std::next(place)->second);
  }
  return std::nullopt;
}

int64_t OffsetProblem::lowerBound() const {
  int64_t live = 0, most = 0;
  for (const Change &change : changesInTimeOrder(*this)) {
    live += change.born ? buffers[change.index].bytes : -buffers[change.index].bytes;
    most = std::max(most, live);
  }
  return most;
}

std::vector<int64_t> OffsetProblem::peakDuringLife() const {
  std::vector<Change> changes;
  changes.reserve(2 * buffers.size());
  for (size_t i = 0; i < buffers.size(); ++i) {
    changes.push_back({buffers[i].begin, true, i});
    changes.push_back({buffers[i].end, false, i});
  }
  sortByTime(changes);
  // Sections between two times at which something changes: what lives in each, and those of every buffer's life.
  std::vector<int64_t> live;
  std::vector<std::pair<size_t, size_t>> lives(buffers.size());
  for (size_t c = 0; c < changes.size(); ++c) {
    const auto &[time, born, index] = changes[c];
    if (c == 0 || time != changes[c - 1].time)
      live.push_back(live.empty() ? 0 : live.back());
    live.back() += born ? buffers[index].bytes : -buffers[index].bytes;
    (born ? lives[index].first : lives[index].second) = live.size() - 1;
  }
  // The larger of two overlapping stretches of a power of two of sections, by the power.
  std::vector<std::vector<int64_t>> largest{live};
  for (size_t width = 1; 2 * width <= live.size(); width *= 2) {
    const std::vector<int64_t> &half = largest.back();
    std::vector<int64_t> whole(live.size() - 2 * width + 1);
    for (size_t s = 0; s < whole.size(); ++s)
      whole[s] = std::max(half[s], half[s + width]);
    largest.push_back(std::move(whole));
  }
  std::vector<int64_t> most;
  for (const auto &[first, end] : lives) {
    size_t power = 0;
    while (size_t(2) << power <= end - first)
      ++power;
    most.push_back(std::max(largest[power][first], largest[power][end - (size_t(1) << power)]));
  }
  return most;
}

int64_t OffsetProblem::arenaBytes(std::span<const int64_t> offsets) const {
  int64_t end = 0;
  for (size_t i = 0; i < buffers.size() && i < offsets.size(); ++i)
    if (buffers[i].bytes > 0)
      end = std::max(end, offsets[i] + buffers[i].bytes);
  return end;
}

} // namespace ds::scheduling
