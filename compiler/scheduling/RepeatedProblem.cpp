//===- RepeatedProblem.cpp - what makes offsets of repeated lives right ---===//
#include "compiler/scheduling/RepeatedOffsets.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace ds::scheduling {
namespace {

/// What is said of each buffer, for each life.
std::vector<int64_t> byLife(const RepeatedProblem &problem, std::span<const int64_t> offsets) {
  std::vector<int64_t> all;
  all.reserve(problem.lives.size());
  for (const RepeatedProblem::Life &life : problem.lives)
    all.push_back(offsets[life.buffer]);
  return all;
}

} // namespace

OffsetProblem RepeatedProblem::unfolded() const {
  OffsetProblem all;
  all.alignment = alignment;
  all.buffers.reserve(lives.size());
  for (const Life &life : lives)
    all.buffers.push_back({buffers[life.buffer].bytes, life.begin, life.end});
  return all;
}

std::optional<std::string> RepeatedProblem::check() const {
  std::vector<std::vector<Life>> livesOf(buffers.size());
  for (const Life &life : lives) {
    if (life.buffer >= buffers.size())
      return "a life is that of buffer " + std::to_string(life.buffer) + " of " + std::to_string(buffers.size());
    livesOf[life.buffer].push_back(life);
  }
  for (size_t i = 0; i < buffers.size(); ++i) {
    std::sort(livesOf[i].begin(), livesOf[i].end(), [](const Life &a, const Life &b) { return a.begin < b.begin; });
    if (livesOf[i].empty())
      return "buffer " + std::to_string(i) + " never lives";
    for (size_t l = 0; l + 1 < livesOf[i].size(); ++l)
      if (livesOf[i][l + 1].begin < livesOf[i][l].end)
        return "buffer " + std::to_string(i) + " lives again from " + std::to_string(livesOf[i][l + 1].begin) +
               " on, before its life up to " + std::to_string(livesOf[i][l].end) + " has ended";
  }
  return unfolded().check();
}

std::optional<std::string> RepeatedProblem::verify(std::span<const int64_t> offsets) const {
  if (offsets.size() != buffers.size())
    return std::to_string(offsets.size()) + " offsets for " + std::to_string(buffers.size()) + " buffers";
  return unfolded().verify(byLife(*this, offsets));
}

int64_t RepeatedProblem::lowerBound() const { return unfolded().lowerBound(); }

int64_t RepeatedProblem::arenaBytes(std::span<const int64_t> offsets) const {
  return unfolded().arenaBytes(byLife(*this, offsets));
}

} // namespace ds::scheduling
