//===- RepeatedBlocks.cpp - the longest runs of equal blocks --------------===//
#include "compiler/scheduling/RepeatedBlocks.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <tuple>
#include <vector>

namespace ds::scheduling {
namespace {

constexpr size_t longestPeriod = 256; // segments of a block

class Segments {
public:
  Segments(std::span<const uint64_t> signatures, std::span<const int64_t> boundaries)
      : signatures_(signatures), boundaries_(boundaries) {
    std::map<std::vector<uint64_t>, size_t> kinds;
    for (size_t i = 0; i < count(); ++i) {
      const std::span<const uint64_t> units = unitsOf(i);
      kind_.push_back(kinds.try_emplace({units.begin(), units.end()}, kinds.size()).first->second);
    }
  }

  size_t count() const { return boundaries_.empty() ? 0 : boundaries_.size() - 1; }
  size_t size(size_t i) const { return unitsOf(i).size(); }
  bool equal(size_t a, size_t b) const { return kind_[a] == kind_[b]; }
  /// Whether segment a is segment b with more in front, or behind.
  bool endsWith(size_t a, size_t b) const {
    const std::span<const uint64_t> whole = unitsOf(a), part = unitsOf(b);
    return whole.size() >= part.size() && std::equal(part.rbegin(), part.rend(), whole.rbegin());
  }
  bool beginsWith(size_t a, size_t b) const {
    const std::span<const uint64_t> whole = unitsOf(a), part = unitsOf(b);
    return whole.size() >= part.size() && std::equal(part.begin(), part.end(), whole.begin());
  }

private:
  std::span<const uint64_t> unitsOf(size_t i) const {
    return signatures_.subspan(size_t(boundaries_[i]), size_t(boundaries_[i + 1] - boundaries_[i]));
  }

  std::span<const uint64_t> signatures_;
  std::span<const int64_t> boundaries_;
  std::vector<size_t> kind_;
};

/// Segments [first, first + length) of which each equals the one `period` behind it, as long as that is in the run.
struct Run {
  size_t first, length, period;
};

std::vector<Run> runsOf(const Segments &segments, size_t period) {
  std::vector<Run> runs;
  for (size_t i = 0; i + period < segments.count();) {
    size_t end = i;
    while (end + period < segments.count() && segments.equal(end, end + period))
      ++end;
    if (end > i) {
      const bool before = i > 0 && segments.endsWith(i - 1, i - 1 + period);
      const bool behind = end + period < segments.count() && segments.beginsWith(end + period, end);
      const size_t first = i - size_t(before), length = end + size_t(behind) - first + period;
      if (length >= 2 * period)
        runs.push_back({first, length, period});
    }
    i = end + 1;
  }
  return runs;
}

/// Where segments are over, several places could be the first. A block begins with its largest segment of those: BERT
/// normalizes its embeddings as each block does its result, and that is the end of a block.
RepeatedBlocks blocksOf(const Segments &segments, const Run &run) {
  // One block further on, for the first may have more in front.
  const auto size = [&](size_t i) { return segments.size(i + run.period); };
  size_t first = run.first;
  for (size_t i = run.first; i <= run.first + run.length % run.period; ++i)
    if (size(i) > size(first))
      first = i;
  return {first, run.period, run.length / run.period};
}

} // namespace

std::vector<RepeatedBlocks> findRepeatedBlocks(std::span<const uint64_t> signatures,
                                               std::span<const int64_t> boundaries) {
  const Segments segments(signatures, boundaries);
  std::vector<Run> runs;
  for (size_t period = 1; period <= std::min(longestPeriod, segments.count() / 2); ++period)
    for (const Run &run : runsOf(segments, period))
      runs.push_back(run);
  std::sort(runs.begin(), runs.end(), [](const Run &a, const Run &b) {
    return std::tuple(b.length, a.period, a.first) < std::tuple(a.length, b.period, b.first);
  });
  std::vector<uint8_t> taken(segments.count(), 0);
  std::vector<RepeatedBlocks> found;
  for (const Run &run : runs) {
    const RepeatedBlocks blocks = blocksOf(segments, run);
    const auto begin = taken.begin() + int64_t(blocks.first), end = taken.begin() + int64_t(blocks.end());
    if (std::find(begin, end, 1) != end)
      continue;
    std::fill(begin, end, 1);
    found.push_back(blocks);
  }
  std::sort(found.begin(), found.end(),
            [](const RepeatedBlocks &a, const RepeatedBlocks &b) { return a.first < b.first; });
  return found;
}

} // namespace ds::scheduling
