//===- MovementProblem.cpp - what may be asked, and whether an answer is right ===//
#include "compiler/scheduling/MovementProblem.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace ds::scheduling {
namespace {

/// By moment, the sum of what a function says of the absences that cover it.
template <typename AmountOf> std::vector<int64_t> covered(const MovementProblem &problem, AmountOf &&amountOf) {
  std::vector<int64_t> sums(problem.live.size() + 1);
  for (size_t i = 0; i < problem.absences.size(); ++i) {
    sums[size_t(problem.absences[i].begin)] += amountOf(i);
    sums[size_t(problem.absences[i].end)] -= amountOf(i);
  }
  for (size_t moment = 1; moment < sums.size(); ++moment)
    sums[moment] += sums[moment - 1];
  return sums;
}

} // namespace

std::optional<std::string> MovementProblem::check() const {
  const auto moments = int64_t(live.size());
  if (capacity < 0)
    return "the memory has less than no bytes";
  for (int64_t bytes : live)
    if (bytes < 0)
      return "less than no bytes live at some moment";
  for (size_t i = 0; i < absences.size(); ++i) {
    const Absence &one = absences[i];
    if (one.begin < 0 || one.begin >= one.end || one.end > moments)
      return "absence " + std::to_string(i) + " covers no moments that there are";
    if (one.bytes < 0 || one.cost < 0)
      return "absence " + std::to_string(i) + " has less than no bytes or cost";
  }
  const std::vector<int64_t> most = covered(*this, [&](size_t i) { return absences[i].bytes; });
  for (size_t moment = 0; moment < live.size(); ++moment)
    if (most[moment] > live[moment])
      return "at moment " + std::to_string(moment) + " more may be away than lives";
  return std::nullopt;
}

std::optional<std::string> verify(const MovementProblem &problem, const LeastMovement &least) {
  if (least.away.size() != problem.absences.size() || least.prices.size() != problem.live.size())
    return "it does not answer for every absence and moment";
  int64_t paid = 0;
  for (size_t i = 0; i < least.away.size(); ++i) {
    if (least.away[i] < 0 || least.away[i] > problem.absences[i].bytes)
      return "more or less is away in absence " + std::to_string(i) + " than can be";
    paid += least.away[i] * problem.absences[i].cost;
  }
  if (paid != least.bytes)
    return "it says " + std::to_string(least.bytes) + " bytes, but moves " + std::to_string(paid);
  const std::vector<int64_t> away = covered(problem, [&](size_t i) { return least.away[i]; });
  __int128 bound = 0; // of the dual program: what the prices ask for room, less what absences save
  std::vector<int64_t> priceUntil{0};
  for (size_t moment = 0; moment < problem.live.size(); ++moment) {
    const int64_t missing = problem.live[moment] - problem.capacity;
    if (missing > away[moment])
      return "at moment " + std::to_string(moment) + " it leaves too little room";
    if (least.prices[moment] < 0)
      return "at moment " + std::to_string(moment) + " room costs less than nothing";
    bound += __int128(missing) * least.prices[moment];
    priceUntil.push_back(priceUntil.back() + least.prices[moment]);
  }
  for (const MovementProblem::Absence &one : problem.absences) {
    const int64_t saved = priceUntil[size_t(one.end)] - priceUntil[size_t(one.begin)] - one.cost;
    bound -= __int128(one.bytes) * std::max<int64_t>(0, saved);
  }
  if (bound != paid)
    return "its prices prove less than the " + std::to_string(paid) + " bytes that it moves";
  return std::nullopt;
}

} // namespace ds::scheduling
