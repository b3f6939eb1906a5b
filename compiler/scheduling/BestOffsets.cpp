//===- BestOffsets.cpp - first fit, and more where it wastes room ---------===//
#include "compiler/scheduling/OffsetProblem.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace ds::scheduling {

std::vector<int64_t> assignOffsets(const OffsetProblem &problem, int64_t enough) {
  constexpr int64_t roundsThreshold = 200, searchThreshold = 100; // room of less than a share of so many is left unused
  constexpr size_t searchedBuffers = 1024; // a node of the search costs the square of them, at worst
  constexpr int64_t rounds = 4;
  std::vector<int64_t> best = assignFirstFit(problem);
  int64_t low = problem.lowerBound(), high = problem.arenaBytes(best);
  if (high <= enough || high - low <= low / roundsThreshold)
    return best;
  if (std::vector<int64_t> promoted = assignPromoted(problem, enough); problem.arenaBytes(promoted) < high) {
    best = std::move(promoted);
    high = problem.arenaBytes(best);
  }
  if (high <= enough || high - low <= low / searchThreshold || problem.buffers.size() > searchedBuffers)
    return best;
  OffsetProblem within = problem;
  for (int64_t round = 0; round < rounds && high > enough && low + problem.alignment <= high; ++round) {
    within.capacity = round == 0 ? low : low + (high - low) / 2;
    if (std::optional<std::vector<int64_t>> found = searchMonotone(within, int64_t(8 * problem.buffers.size()))) {
      best = std::move(*found);
      high = problem.arenaBytes(best);
    } else {
      low = within.capacity;
    }
  }
  return best;
}

} // namespace ds::scheduling
