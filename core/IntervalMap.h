//===- IntervalMap.h - values of half-open intervals ------------------------===//
#pragma once

#include <cstdint>
#include <iterator>
#include <map>
#include <utility>

namespace ds {

/// Intervals [begin, end) of which no two overlap, each with a value. Where one is cut in two, both have its value; a
/// value that has skip(n) is told that its interval now begins n further on.
template <typename Value> class IntervalMap {
public:
  /// Cuts intervals at `begin` and at `end`, and calls visit(begin, end, value) for those between, in order.
  template <typename Visit> void over(uint64_t begin, uint64_t end, Visit visit) {
    if (const auto it = find(begin, end); it != intervals_.end())
      return (void)visit(begin, end, it->second.value);
    cut(begin);
    cut(end);
    for (auto it = intervals_.lower_bound(begin); it != intervals_.end() && it->first < end; ++it)
      visit(it->first, it->second.end, it->second.value);
  }

  /// Calls visit(begin, end, value) for each interval of which a part lies in [begin, end), in order and whole.
  template <typename Visit> void touching(uint64_t begin, uint64_t end, Visit visit) const {
    auto it = intervals_.upper_bound(begin);
    if (it != intervals_.begin() && std::prev(it)->second.end > begin && begin < end)
      --it;
    for (; it != intervals_.end() && it->first < end; ++it)
      visit(it->first, it->second.end, it->second.value);
  }

  /// Makes [begin, end) one interval, whatever was there.
  void assign(uint64_t begin, uint64_t end, Value value) {
    if (begin >= end)
      return;
    if (const auto it = find(begin, end); it != intervals_.end()) {
      it->second.value = std::move(value);
      return;
    }
    erase(begin, end);
    intervals_.emplace(begin, Interval{end, std::move(value)});
  }

  /// Leaves nothing in [begin, end).
  void erase(uint64_t begin, uint64_t end) {
    cut(begin);
    cut(end);
    intervals_.erase(intervals_.lower_bound(begin), intervals_.lower_bound(end));
  }

private:
  struct Interval {
    uint64_t end;
    Value value;
  };

  /// The interval that is [begin, end), which most callers ask for again and again.
  auto find(uint64_t begin, uint64_t end) {
    const auto it = intervals_.find(begin);
    return it != intervals_.end() && it->second.end == end ? it : intervals_.end();
  }

  void cut(uint64_t at) {
    const auto after = intervals_.upper_bound(at);
    if (after == intervals_.begin())
      return;
    const auto left = std::prev(after);
    if (left->first == at || left->second.end <= at)
      return;
    Interval right = left->second;
    if constexpr (requires { right.value.skip(at); })
      right.value.skip(at - left->first);
    left->second.end = at;
    intervals_.emplace_hint(after, at, std::move(right));
  }

  std::map<uint64_t, Interval> intervals_; // by begin
};

} // namespace ds
