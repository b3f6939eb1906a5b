//===- PromotedFit.cpp - first fit in orders that learn -------------------===//
//
// Long lives first, so that what stays lies together at the bottom; or first those that live when most bytes do. A
// buffer that ends above the bound was placed too late: it moves half the way to the front, and all are placed again
// (squeaky wheel optimization, Joslin and Clements, 1999).
//
//===----------------------------------------------------------------------===//
#include "compiler/scheduling/OffsetProblem.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <tuple>
#include <utility>
#include <vector>

namespace ds::scheduling {
namespace {

/// Of each buffer, the most bytes that live at some time of its life.
std::vector<int64_t> mostAround(const OffsetProblem &problem) {
  std::vector<int64_t> times;
  for (const OffsetProblem::Buffer &buffer : problem.buffers)
    times.insert(times.end(), {buffer.begin, buffer.end});
  std::sort(times.begin(), times.end());
  times.erase(std::unique(times.begin(), times.end()), times.end());
  const auto section = [&](int64_t time) {
    return size_t(std::lower_bound(times.begin(), times.end(), time) - times.begin());
  };
  std::vector<int64_t> live(times.size(), 0);
  for (const OffsetProblem::Buffer &buffer : problem.buffers) {
    live[section(buffer.begin)] += buffer.bytes;
    live[section(buffer.end)] -= buffer.bytes;
  }
  std::partial_sum(live.begin(), live.end(), live.begin());
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
  for (const OffsetProblem::Buffer &buffer : problem.buffers) {
    const size_t first = section(buffer.begin), end = section(buffer.end);
    size_t power = 0;
    while (size_t(2) << power <= end - first)
      ++power;
    most.push_back(std::max(largest[power][first], largest[power][end - (size_t(1) << power)]));
  }
  return most;
}

/// Buffers that end above `bound` move half the way to the front.
void promote(std::vector<size_t> &order, const OffsetProblem &problem, const std::vector<int64_t> &offsets,
             int64_t bound) {
  std::vector<std::pair<size_t, size_t>> places; // twice the place, so that promoted ones come before equals
  for (size_t place = 0; place < order.size(); ++place) {
    const size_t i = order[place];
    const bool late = offsets[i] + problem.buffers[i].bytes > bound;
    places.emplace_back(late ? place : 2 * place + 1, i);
  }
  std::stable_sort(places.begin(), places.end(), [](const auto &a, const auto &b) { return a.first < b.first; });
  std::transform(places.begin(), places.end(), order.begin(), [](const auto &place) { return place.second; });
}

} // namespace

std::vector<int64_t> assignPromoted(const OffsetProblem &problem) {
  constexpr int64_t goodEnough = 1000; // room of less than 1/1000 is not worth another round
  const std::vector<OffsetProblem::Buffer> &buffers = problem.buffers;
  const auto rounds = std::clamp<size_t>((size_t(1) << 16) / std::max<size_t>(buffers.size(), 1), 2, 40);
  const int64_t bound = problem.lowerBound();
  const std::vector<int64_t> most = mostAround(problem);
  std::vector<int64_t> best;
  for (const bool byMost : {true, false}) {
    std::vector<size_t> order(buffers.size());
    std::iota(order.begin(), order.end(), size_t(0));
    const auto rank = [&](size_t i) {
      return std::tuple(byMost ? -most[i] : 0, buffers[i].begin - buffers[i].end, -buffers[i].bytes, i);
    };
    std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return rank(a) < rank(b); });
    for (size_t round = 0; round < rounds; ++round) {
      std::vector<int64_t> offsets = assignInOrder(problem, order);
      promote(order, problem, offsets, bound);
      if (best.empty() || problem.arenaBytes(offsets) < problem.arenaBytes(best))
        best = std::move(offsets);
      if (problem.arenaBytes(best) - bound <= bound / goodEnough)
        return best;
    }
  }
  return best;
}

} // namespace ds::scheduling
