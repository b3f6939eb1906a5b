//===- CandidateCuts.cpp - positions that are worth considering -----------===//
//
// A cut is worth considering where few bytes cross it, compared with its neighbourhood: in a residual network where
// nothing but the residual stream crosses. Of these, a model that repeats a block offers two or more in each; the ones
// between two blocks are taken, so that stages hold whole blocks.
//
//===----------------------------------------------------------------------===//
#include "compiler/scheduling/PartitionMethod.h"
#include "compiler/scheduling/PipelinePartition.h"
#include "compiler/scheduling/RepeatedBlocks.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <optional>
#include <vector>

namespace ds::scheduling {
namespace {

constexpr double saving = 0.9;       // of the bytes: what has less is worth moving a cut for
constexpr double neighbourhood = .5; // of a stage's mean time: how far a cut is moved for that
constexpr double margin = 1. / 16;   // of a stage's mean time: a stage at either end is no shorter
constexpr double imbalance = 1.25;   // times the best bottleneck: what few bytes may cost
constexpr int64_t wide = 4;          // times the bytes of the position before: the last one, where logits cross
constexpr double wholeBlocks =
    1.05; // times that of cuts inside of blocks, as few bytes sent: what whole blocks may cost

/// Finds positions that send few bytes.
class Valleys {
public:
  explicit Valleys(const PartitionProblem &problem) : problem_(problem), time_(1, 0) {
    for (const PartitionProblem::Unit &unit : problem.units)
      time_.push_back(time_.back() + unit.seconds);
    stage_ = time_.back() / double(problem.stages);
    for (size_t i = 1; i + 1 < time_.size(); ++i)
      if (problem.mayCut.empty() || problem.mayCut[i])
        allowed_.push_back(i);
  }

  /// Whether no side of the position is next to nothing.
  bool leavesWork(int64_t position) const {
    return std::min(time_[size_t(position)], time_.back() - time_[size_t(position)]) >= margin * stage_;
  }

  /// Positions that have no other within `reach` stages' time with clearly fewer bytes, nor beside them one with
  /// slightly fewer.
  std::vector<int64_t> within(double reach) const {
    const std::vector<int64_t> least = minAround(reach * stage_);
    const std::vector<uint8_t> beside = besideFewer();
    std::vector<int64_t> found;
    for (size_t i = 0; i < allowed_.size(); ++i)
      if (double(least[i]) >= saving * double(bytes(i)) && !beside[i])
        found.push_back(int64_t(allowed_[i]));
    return found;
  }

private:
  int64_t bytes(size_t i) const { return problem_.crossing[allowed_[i]]; }
  double time(size_t i) const { return time_[allowed_[i]]; }

  /// By allowed position, the fewest bytes of those at most `seconds` away that leave work on both sides.
  std::vector<int64_t> minAround(double seconds) const {
    std::vector<int64_t> least;
    std::deque<size_t> window; // bytes rise towards the back
    size_t next = 0;
    for (size_t i = 0; i < allowed_.size(); ++i) {
      for (; next < allowed_.size() && (next <= i || time(next) - time(i) <= seconds); ++next) {
        if (!leavesWork(int64_t(allowed_[next])))
          continue;
        while (!window.empty() && bytes(window.back()) >= bytes(next))
          window.pop_back();
        window.push_back(next);
      }
      while (!window.empty() && window.front() < i && time(i) - time(window.front()) > seconds)
        window.pop_front();
      least.push_back(window.empty() ? bytes(i) : bytes(window.front()));
    }
    return least;
  }

  /// By allowed position, whether the next one with other bytes, on either side, has slightly fewer.
  std::vector<uint8_t> besideFewer() const {
    std::vector<uint8_t> beside(allowed_.size(), 0);
    const auto follow = [&](size_t before, size_t i) {
      const bool slightlyFewer = bytes(before) < bytes(i) && double(bytes(before)) >= saving * double(bytes(i));
      if (slightlyFewer || (bytes(before) == bytes(i) && beside[before]))
        beside[i] = 1;
    };
    for (size_t i = 1; i < allowed_.size(); ++i)
      follow(i - 1, i);
    for (size_t i = allowed_.size(); i-- > 1;)
      follow(i, i - 1);
    return beside;
  }

  const PartitionProblem &problem_;
  std::vector<double> time_;    // by position, of what stands before
  std::vector<size_t> allowed_; // positions
  double stage_;                // mean seconds of a stage
};

/// Leaves out the positions inside of a block that is repeated.
std::vector<int64_t> betweenBlocks(const PartitionProblem &problem, const std::vector<int64_t> &positions) {
  std::vector<uint64_t> signatures;
  for (const PartitionProblem::Unit &unit : problem.units)
    signatures.push_back(unit.signature);
  std::vector<int64_t> boundaries{0};
  boundaries.insert(boundaries.end(), positions.begin(), positions.end());
  boundaries.push_back(int64_t(problem.units.size()));
  std::vector<uint8_t> inside(boundaries.size(), 0);
  for (const RepeatedBlocks &run : findRepeatedBlocks(signatures, boundaries))
    for (size_t i = run.first; i < run.end(); ++i)
      inside[i] = (i - run.first) % run.period != 0;
  std::vector<int64_t> between;
  for (size_t i = 1; i + 1 < boundaries.size(); ++i)
    if (!inside[i])
      between.push_back(boundaries[i]);
  return between;
}

} // namespace

std::vector<int64_t> layerBegins(const PartitionProblem &problem) {
  std::vector<int64_t> begins = betweenBlocks(problem, Valleys(problem).within(neighbourhood));
  begins.insert(begins.begin(), 0);
  return begins;
}

std::vector<int64_t> layerBeginsOfModel(PartitionProblem problem) {
  problem.stages = std::min<int64_t>(2, int64_t(problem.units.size()));
  problem.stages = int64_t(layerBegins(problem).size());
  std::vector<int64_t> begins = layerBegins(problem);
  const auto bytes = [&](size_t fromEnd) { return problem.crossing[size_t(begins[begins.size() - fromEnd])]; };
  if (begins.size() > 2 && bytes(1) > wide * bytes(2))
    begins.pop_back();
  return begins;
}

std::vector<uint8_t> candidateCuts(const PartitionProblem &problem) {
  std::vector<uint8_t> all = problem.mayCut;
  if (all.empty())
    all.assign(problem.units.size() + 1, 1);
  all.front() = all.back() = 0; // nothing would be on one side
  const std::optional<Partition> best = partition(problem);
  if (!best)
    return all;
  const auto bottleneckOf = [&](const std::vector<uint8_t> &mask) {
    PartitionProblem narrowed = problem;
    narrowed.mayCut = mask;
    const std::optional<Partition> found = partition(narrowed);
    return found ? found->bottleneck : std::numeric_limits<double>::infinity();
  };
  const auto isGood = [&](double bottleneck) { return bottleneck <= imbalance * best->bottleneck; };
  const Valleys valleys(problem);
  const auto asMask = [&](const std::vector<int64_t> &positions) {
    std::vector<uint8_t> mask(all.size(), 0);
    for (int64_t position : positions)
      mask[size_t(position)] = valleys.leavesWork(position);
    return mask;
  };
  const std::vector<int64_t> deepest = valleys.within(neighbourhood);
  const std::vector<uint8_t> between = asMask(betweenBlocks(problem, deepest)), inside = asMask(deepest);
  const double whole = bottleneckOf(between), cut = bottleneckOf(inside);
  if (isGood(whole) && whole <= wholeBlocks * cut)
    return between;
  if (isGood(cut))
    return inside;
  for (double reach : {1. / 8, 1. / 32, 1. / 128, 1. / 512})
    if (std::vector<uint8_t> mask = asMask(valleys.within(reach)); isGood(bottleneckOf(mask)))
      return mask;
  return all;
}

} // namespace ds::scheduling
