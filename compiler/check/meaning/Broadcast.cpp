//===- Broadcast.cpp - how the elements of a tensor repeat where it broadcasts --===//
#include "compiler/check/meaning/Broadcast.h"

#include <algorithm>

namespace ds::check {

namespace {

void add(Runs &runs, Run run) {
  if (run.count == 1)
    return;
  if (!runs.empty() && runs.back().repeats == run.repeats)
    runs.back().count *= run.count;
  else
    runs.push_back(run);
}

} // namespace

std::optional<Runs> runsOf(std::span<const int64_t> from, std::span<const int64_t> to) {
  if (from.size() > to.size())
    return std::nullopt;
  Runs runs;
  for (size_t d = 0; d < to.size(); ++d) {
    const size_t missing = to.size() - from.size();
    const int64_t size = d < missing ? 1 : from[d - missing];
    if (size != 1 && size != to[d])
      return std::nullopt;
    add(runs, {uint64_t(to[d]), size != to[d]});
  }
  return runs;
}

bool isWhole(const Runs &runs) {
  return std::ranges::none_of(runs, [](const Run &run) { return run.repeats; });
}

std::optional<Runs> composed(const Runs &inner, const Runs &outer) {
  Runs result, left(inner.rbegin(), inner.rend()); // what of `inner` is not placed yet, the next run last
  if (std::ranges::count(inner, uint64_t(0), &Run::count) + std::ranges::count(outer, uint64_t(0), &Run::count) > 0)
    return std::nullopt; // a tensor without elements
  for (const Run &run : outer) {
    if (run.repeats) {
      add(result, run);
      continue;
    }
    for (uint64_t open = run.count; open > 1;) { // elements of the inner tensor that stand here
      if (left.empty())
        return std::nullopt;
      Run &next = left.back();
      if (next.count <= open ? open % next.count != 0 : next.count % open != 0)
        return std::nullopt;
      const uint64_t taken = std::min(next.count, open);
      // The outer part of a run comes first, so a run is cut from its outer end.
      add(result, {taken, next.repeats});
      open /= taken;
      next.count /= taken;
      if (next.count == 1)
        left.pop_back();
    }
  }
  if (!left.empty())
    return std::nullopt;
  return result;
}

} // namespace ds::check
