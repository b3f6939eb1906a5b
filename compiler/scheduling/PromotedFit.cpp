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

std::vector<int64_t> assignPromoted(const OffsetProblem &problem, int64_t enough) {
  constexpr int64_t goodEnough = 1000; // room of less than 1/1000 is not worth another round
  const std::vector<OffsetProblem::Buffer> &buffers = problem.buffers;
  const auto rounds = std::clamp<size_t>((size_t(1) << 16) / std::max<size_t>(buffers.size(), 1), 2, 40);
  const int64_t bound = problem.lowerBound();
  const std::vector<int64_t> most = problem.peakDuringLife();
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
      if (problem.arenaBytes(best) <= std::max(enough, bound + bound / goodEnough))
        return best;
    }
  }
  return best;
}

} // namespace ds::scheduling
