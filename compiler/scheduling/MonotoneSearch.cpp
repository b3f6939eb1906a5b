//===- MonotoneSearch.cpp - a branch and bound over orders of buffers -------===//
//
// Of all packings within the capacity take one whose offsets have the least sum, and its buffers in the order of
// (offset, preorder). Each buffer then rests on those before it that live with it, or at 0. The search places buffers
// in such orders only (Moffitt, "MiniMalloc", ASPLOS 2023, whose bounds and preorders are used too):
//   - the next buffer rests no lower than the last one, and comes after it in the preorder where it rests as high;
//   - it does not rest where another one that waits would fit below it, which could be lowered;
//   - one that now rests too low must still be lifted by another that waits and lives with it;
//   - at no time do what waits, on the lowest place where one of it may rest, exceed the capacity.
// After each placing, what waits falls into parts that share no time; each is packed by itself. A part that cannot be
// packed blames placed buffers, and the search jumps back to the last of these, since another choice in between would
// change nothing. Searches of this kind are lucky or hopeless, so many short ones are tried, in preorders that are
// shaken by numbers from a fixed sequence. Jumps may pass a packing by; so when a search with jumps comes to its end,
// one without them decides.
//
//===----------------------------------------------------------------------===//
#include "compiler/scheduling/OffsetProblem.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <numeric>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

namespace ds::scheduling {
namespace {

/// A buffer on the axis of sections, the times between two changes.
struct Item {
  int64_t bytes;
  size_t first, end; // sections [first, end)
  size_t index;      // in the problem
  int64_t width;     // in time
};

class Search {
public:
  explicit Search(const OffsetProblem &problem) : capacity_(problem.capacity & -problem.alignment) {
    std::vector<int64_t> times;
    for (const OffsetProblem::Buffer &buffer : problem.buffers)
      if (buffer.bytes > 0)
        times.insert(times.end(), {buffer.begin, buffer.end});
    std::sort(times.begin(), times.end());
    times.erase(std::unique(times.begin(), times.end()), times.end());
    const auto section = [&](int64_t time) {
      return size_t(std::lower_bound(times.begin(), times.end(), time) - times.begin());
    };
    for (size_t i = 0; i < problem.buffers.size(); ++i) {
      const auto &[bytes, begin, end] = problem.buffers[i];
      if (bytes > 0)
        items_.push_back(
            {(bytes + problem.alignment - 1) & -problem.alignment, section(begin), section(end), i, end - begin});
    }
    sections_ = times.size();
  }

  /// Offsets by buffer of the problem, 0 for those without bytes; nothing if none were found in `nodes` placings.
  std::optional<std::vector<int64_t>> run(size_t buffers, int64_t nodes) {
    jumping_ = true;
    for (uint64_t attempt = 0; nodes > 0; ++attempt) {
      const uint64_t search = attempt / preorders;
      nodesLeft_ = jumping_ ? std::min(nodes, shortestSearch * luby(search + 1)) : nodes;
      nodes -= nodesLeft_;
      start(attempt % preorders, search);
      if (pack(everything(), {})) {
        std::vector<int64_t> offsets(buffers, 0);
        for (size_t i = 0; i < items_.size(); ++i)
          offsets[items_[i].index] = rest_[i];
        return offsets;
      }
      if (nodesLeft_ > 0 && !jumping_)
        return std::nullopt; // the search was complete
      jumping_ = jumping_ && nodesLeft_ == 0;
      nodes += nodesLeft_;
    }
    return std::nullopt;
  }

private:
  static constexpr uint64_t preorders = 4;
  static constexpr int64_t shortestSearch = 1000; // nodes
  static constexpr double shake = 0.25;           // how far widths and areas are off in later searches
  using Part = std::vector<size_t>;               // items to place, in time order of their first sections
  using Items = std::vector<bool>;                // by item: whether it is of the set

  /// 1 1 2 1 1 2 4 1 1 2 ... (Luby, Sinclair and Zuckerman, 1993): within a constant of the best restarts there are.
  static int64_t luby(uint64_t i) {
    for (uint64_t power = 1;; power *= 2) {
      if (i == 2 * power - 1)
        return int64_t(power);
      if (i < 2 * power - 1)
        return luby(i - power + 1);
    }
  }

  /// A factor of about 1 that depends on a buffer and the search; 1 in the first.
  static double shaken(size_t index, uint64_t search) {
    if (search == 0)
      return 1;
    uint64_t bits = ((index + 1) * 0x9E3779B97F4A7C15U) ^ (search * 0xD1B54A32D192ED03U); // splitmix64's mixing
    bits = (bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9U;
    bits = (bits ^ (bits >> 27)) * 0x94D049BB133111EBU;
    return 1 - shake + 2 * shake * double((bits ^ (bits >> 31)) % 1024) / 1024;
  }

  /// Sorts the items, and puts none in place.
  void start(uint64_t preorder, uint64_t search) {
    waiting_.assign(sections_, 0);
    for (const Item &item : items_)
      for (size_t s = item.first; s < item.end; ++s)
        waiting_[s] += item.bytes;
    const auto rank = [&](const Item &item) {
      const double width = double(item.width) * shaken(item.index, search), area = width * double(item.bytes);
      const auto most =
          double(*std::max_element(waiting_.begin() + ptrdiff_t(item.first), waiting_.begin() + ptrdiff_t(item.end)));
      const std::array<std::tuple<double, double, double>, preorders> largest = {
          {{width, area, most}, {most, area, width}, {most, width, area}, {double(item.bytes), most, width}}};
      return std::pair(largest[preorder], item.index);
    };
    std::vector<std::pair<decltype(rank(items_[0])), Item>> ranked;
    ranked.reserve(items_.size());
    for (const Item &item : items_)
      ranked.emplace_back(rank(item), item);
    std::sort(ranked.begin(), ranked.end(), [](const auto &a, const auto &b) { return a.first > b.first; });
    for (size_t i = 0; i < items_.size(); ++i)
      items_[i] = ranked[i].second;
    rest_.assign(items_.size(), 0);
    base_.assign(sections_, 0);
    placed_.clear();
  }

  Part everything() const {
    Part part(items_.size());
    std::iota(part.begin(), part.end(), size_t(0));
    std::sort(part.begin(), part.end(),
              [&](size_t a, size_t b) { return std::tie(items_[a].first, a) < std::tie(items_[b].first, b); });
    return part;
  }

  /// The buffer that was placed last.
  struct Last {
    int64_t offset = 0;
    size_t item = 0;
  };

  bool liveTogether(size_t a, size_t b) const {
    return items_[a].first < items_[b].end && items_[b].first < items_[a].end;
  }

  /// The lowest offset that item `i` of `part` may end at: where it rests, or, if it rests too low to be the next, on
  /// the lowest of those that may lift it.
  int64_t lowestOffset(const Part &part, size_t i, Last last) const {
    if (std::tie(rest_[i], i) >= std::tie(last.offset, last.item))
      return rest_[i];
    int64_t lowest = capacity_;
    for (size_t other : part) {
      if (items_[other].first >= items_[i].end)
        break;
      if (other != i && liveTogether(i, other))
        lowest = std::min(lowest, std::max(rest_[other], last.offset) + items_[other].bytes);
    }
    return lowest;
  }

  /// Whether `part` may still fit, for all that can be told of each time and each buffer alone.
  bool fits(const Part &part, Last last) {
    const size_t begin = items_[part.front()].first;
    size_t end = begin;
    for (size_t i : part) {
      const Item &item = items_[i];
      const int64_t lowest = lowestOffset(part, i, last);
      if (lowest + item.bytes > capacity_) {
        startBlame();
        blame(part, i, capacity_ - item.bytes + 1, last);
        return false;
      }
      if (item.end > end) {
        std::fill(base_.begin() + ptrdiff_t(end), base_.begin() + ptrdiff_t(item.end), capacity_);
        end = item.end;
      }
      for (size_t s = item.first; s < item.end; ++s)
        base_[s] = std::min(base_[s], lowest);
    }
    for (size_t s = begin; s < end; ++s)
      if (base_[s] + waiting_[s] > capacity_) {
        startBlame();
        for (size_t i : part)
          if (items_[i].first <= s && s < items_[i].end)
            blame(part, i, capacity_ - waiting_[s] + 1, last);
        return false;
      }
    return true;
  }

  void startBlame() {
    blamed_.assign(items_.size(), false);
    culprits_.clear();
  }

  /// Blames placed items that keep item `i` of `part` from ending below `bound`: the earliest, for the longest jumps.
  void blame(const Part &part, size_t i, int64_t bound, Last last) {
    if (!jumping_)
      return;
    if (std::max(rest_[i], last.offset) >= bound)
      return blameRest(i, bound);
    // It rests too low to be the next, and all that may lift it lift it too high.
    blameFirst([&](size_t p) { return std::tie(rest_[p], p) > std::tie(rest_[i], i); });
    for (size_t other : part)
      if (other != i && liveTogether(i, other))
        blameRest(other, bound - items_[other].bytes);
  }

  /// Blames what item `i` rests on, or else what made the search pass `bound`.
  void blameRest(size_t i, int64_t bound) {
    if (bound <= 0)
      return;
    if (rest_[i] >= bound)
      blameFirst([&](size_t p) { return liveTogether(p, i) && rest_[p] + items_[p].bytes >= bound; });
    else
      blameFirst([&](size_t p) { return rest_[p] >= bound; });
  }

  template <typename Condition> void blameFirst(Condition condition) {
    if (std::any_of(culprits_.begin(), culprits_.end(), condition))
      return;
    const auto found = std::find_if(placed_.begin(), placed_.end(), condition);
    if (found == placed_.end())
      return;
    blamed_[*found] = true;
    culprits_.push_back(*found);
  }

  /// Parts of `part` that share no time.
  std::vector<Part> split(const Part &part) const {
    size_t end = 0;
    std::vector<Part> parts;
    for (size_t i : part) {
      if (parts.empty() || items_[i].first >= end)
        parts.emplace_back();
      parts.back().push_back(i);
      end = std::max(end, items_[i].end);
    }
    return parts;
  }

  /// Packs the items of `part` on what is there, or leaves everything as it was.
  bool pack(const Part &part, Last last) {
    const std::vector<Part> parts = split(part);
    for (const Part &one : parts)
      if (!fits(one, last))
        return false;
    if (parts.size() == 1)
      return packConnected(part, last);
    const std::vector<int64_t> rest = rest_, waiting = waiting_;
    const size_t placed = placed_.size();
    for (const Part &one : parts)
      if (!packConnected(one, last)) {
        std::tie(rest_, waiting_) = std::tie(rest, waiting);
        placed_.resize(placed);
        return false;
      }
    return true;
  }

  bool packConnected(const Part &part, Last last) {
    int64_t lowestTop = std::numeric_limits<int64_t>::max();
    for (size_t i : part)
      lowestTop = std::min(lowestTop, rest_[i] + items_[i].bytes);
    std::vector<Last> candidates;
    for (size_t i : part)
      if (std::tie(rest_[i], i) >= std::tie(last.offset, last.item) && rest_[i] < lowestTop)
        candidates.push_back({rest_[i], i});
    std::sort(candidates.begin(), candidates.end(),
              [](const Last &a, const Last &b) { return std::tie(a.offset, a.item) < std::tie(b.offset, b.item); });
    Items blamed(items_.size(), false); // by any of the candidates, for all of them
    for (const Last &candidate : candidates) {
      if (nodesLeft_ == 0)
        return false;
      --nodesLeft_;
      if (place(part, candidate))
        return true;
      if (nodesLeft_ == 0)
        return false;
      if (!jumping_)
        continue;
      const bool jump = !blamed_[candidate.item]; // no candidate can do better
      blamed_[candidate.item] = false;
      culprits_.clear();
      if (!jump)
        blameRest(candidate.item, candidate.offset);
      std::transform(blamed.begin(), blamed.end(), blamed_.begin(), blamed.begin(), std::logical_or<>());
      if (jump)
        break;
    }
    blamed_ = std::move(blamed);
    return false;
  }

  /// Places one item of `part` and packs the others, or leaves everything as it was.
  bool place(const Part &part, Last chosen) {
    const Item &item = items_[chosen.item];
    const int64_t top = chosen.offset + item.bytes;
    std::vector<std::pair<size_t, int64_t>> lower; // items that rested lower, and where
    Part others;
    others.reserve(part.size());
    for (size_t i : part) {
      if (i == chosen.item)
        continue;
      others.push_back(i);
      if (liveTogether(i, chosen.item) && rest_[i] < top) {
        lower.emplace_back(i, rest_[i]);
        rest_[i] = top;
      }
    }
    for (size_t s = item.first; s < item.end; ++s)
      waiting_[s] -= item.bytes;
    placed_.push_back(chosen.item);
    if (others.empty() || pack(others, chosen))
      return true;
    placed_.pop_back();
    for (size_t s = item.first; s < item.end; ++s)
      waiting_[s] += item.bytes;
    for (const auto &[i, rest] : lower)
      rest_[i] = rest;
    return false;
  }

  int64_t capacity_;
  size_t sections_ = 0;
  std::vector<Item> items_;      // in preorder
  std::vector<int64_t> rest_;    // by item: where it is, or the lowest offset where it may rest
  std::vector<int64_t> base_;    // by section: where the lowest of those that wait may rest; scratch of fits()
  std::vector<int64_t> waiting_; // by section: bytes of those not yet placed
  std::vector<size_t> placed_;   // items, in the order of their placing
  Items blamed_;                 // for the last failure
  std::vector<size_t> culprits_; // of them, those that the last look at it found; scratch
  bool jumping_ = true;
  int64_t nodesLeft_ = 0;
};

} // namespace

std::optional<std::vector<int64_t>> searchMonotone(const OffsetProblem &problem, int64_t nodes) {
  return Search(problem).run(problem.buffers.size(), nodes);
}

} // namespace ds::scheduling
