//===- PipelinePartition.cpp - the slowest stage as fast as can be --------===//
//
// Whether a bottleneck T can be met is a dynamic programme from the end: position a can begin stage k if some position
// b behind it can begin stage k + 1 and the stage [a, b) takes at most T. Its time splits into a part of b and a part
// of a, and its memory grows with b, so the best b is the minimum of a sliding window. Only positions that leave no
// side more than its stages can do within T are looked at: few, unless T is far above the mean. The least T is found by
// bisection; a second programme finds the fewest bytes for it.
//
//===----------------------------------------------------------------------===//
#include "compiler/scheduling/PipelinePartition.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <optional>
#include <vector>

namespace ds::scheduling {
namespace {

constexpr int64_t none = std::numeric_limits<int64_t>::max();
constexpr int timeBits = 44; // of the sum of all times, in ticks

/// Sums up to each position where a cut may be, the ends included. Times are integers, so that sums are exact.
struct Positions {
  explicit Positions(const PartitionProblem &problem) {
    const double scale = ticksPerSecond(problem);
    const auto ticks = [&](double seconds) { return std::llround(seconds * scale); };
    const auto units = int64_t(problem.units.size());
    int64_t seconds = 0, states = 0, activations = 0;
    for (int64_t i = 0; i <= units; ++i) {
      const bool end = i == 0 || i == units;
      if (end || problem.mayCut.empty() || problem.mayCut[size_t(i)]) {
        const int64_t bytes = end ? 0 : problem.crossing[size_t(i)];
        at.push_back(i);
        sent.push_back(bytes);
        const int64_t transfer = ticks(double(bytes) * problem.secondsPerByte);
        early.push_back(seconds - transfer);
        late.push_back(seconds + transfer);
        time.push_back(seconds);
        state.push_back(states);
        activation.push_back(activations);
      }
      if (i == units)
        break;
      const PartitionProblem::Unit &unit = problem.units[size_t(i)];
      seconds += ticks(unit.seconds);
      states += unit.stateBytes;
      activations += unit.activationBytes;
    }
  }

  static double ticksPerSecond(const PartitionProblem &problem) {
    double all = 0;
    for (const PartitionProblem::Unit &unit : problem.units)
      all += unit.seconds;
    const int64_t most = *std::max_element(problem.crossing.begin(), problem.crossing.end());
    all += 2 * double(most) * problem.secondsPerByte;
    return all > 0 ? std::ldexp(1, std::min(1000, timeBits - 1 - std::ilogb(all))) : 1;
  }

  int64_t last() const { return int64_t(at.size()) - 1; }

  // A stage [a, b) takes late[b] - early[a].
  std::vector<int64_t> at, sent, time, early, late, state, activation;
};

/// Minimum of a range of values that are lowered one by one.
class RangeMinimum {
public:
  explicit RangeMinimum(size_t size) : leaves_(std::bit_ceil(size)), tree_(2 * leaves_, none) {}

  void lower(size_t place, int64_t value) {
    for (size_t node = place + leaves_; node > 0 && tree_[node] > value; node /= 2)
      tree_[node] = value;
  }
  /// Of [begin, end).
  int64_t minimum(size_t begin, size_t end) const {
    int64_t least = none;
    for (begin += leaves_, end += leaves_; begin < end; begin /= 2, end /= 2) {
      if (begin % 2 == 1)
        least = std::min(least, tree_[begin++]);
      if (end % 2 == 1)
        least = std::min(least, tree_[--end]);
    }
    return least;
  }

private:
  size_t leaves_;
  std::vector<int64_t> tree_;
};

/// Where a stage may begin, as indices into Positions, and the fewest bytes sent from there on.
struct Level {
  int64_t low, high; // both included; empty where low > high
  std::vector<int64_t> bytes;

  int64_t at(int64_t index) const { return index < low || index > high ? none : bytes[size_t(index - low)]; }
};

class Partitioner {
public:
  explicit Partitioner(const PartitionProblem &problem)
      : problem_(problem), positions_(problem), now_(positions_.at.size()), next_(positions_.at.size()),
        window_(positions_.at.size()) {}

  std::optional<Partition> run() {
    if (problem_.stages > positions_.last() || !meets(ceiling()))
      return std::nullopt;
    const int64_t limit = minBottleneck();
    return cutsOf(fewestBytes(limit), limit);
  }

private:
  int64_t total() const { return positions_.time.back(); }
  /// No stage takes longer.
  int64_t ceiling() const {
    int64_t longest = 0;
    for (size_t i = 0; i < positions_.at.size(); ++i)
      longest = std::max(longest, positions_.late[i] - positions_.time[i]);
    return total() + 2 * longest;
  }

  int64_t within(int64_t stages, int64_t limit) const {
    return limit > 0 && stages > total() / limit ? total() : std::min(stages * limit, total());
  }

  /// The first and last position where stage k > 0 may begin if none takes more than `limit`, whatever is sent.
  Level bandOf(int64_t stage, int64_t limit) const {
    const std::vector<int64_t> &time = positions_.time;
    const int64_t least = total() - within(problem_.stages - stage, limit), most = within(stage, limit);
    const int64_t low = std::lower_bound(time.begin(), time.end(), least) - time.begin();
    const int64_t high = std::upper_bound(time.begin(), time.end(), most) - time.begin() - 1;
    return {std::max(low, stage), std::min(high, positions_.last() - (problem_.stages - stage)), {}};
  }

  bool fits(int64_t stage, int64_t a, int64_t b) const {
    if (problem_.memoryBytes == 0)
      return true;
    const int64_t flying = problem_.inFlight.empty() ? 1 : problem_.inFlight[size_t(stage)];
    const auto from = size_t(a), to = size_t(b);
    return positions_.state[to] - positions_.state[from] +
               flying * (positions_.activation[to] - positions_.activation[from]) <=
           problem_.memoryBytes;
  }

  /// Whether there is a partition whose stages take at most `limit` ticks each.
  bool meets(int64_t limit) {
    Level after{positions_.last(), positions_.last(), {}};
    next_[size_t(after.low)] = 1;
    for (int64_t stage = problem_.stages - 1; stage >= 0; --stage) {
      const Level band = stage == 0 ? Level{0, 0, {}} : bandOf(stage, limit);
      if (!reach(stage, limit, band, after))
        return false;
      std::swap(now_, next_);
      after = band;
    }
    return true;
  }

  /// now_[a]: whether stage `stage` can begin at a, for a of the band; next_ says that of the next stage, for b of
  /// `after`.
  bool reach(int64_t stage, int64_t limit, const Level &band, const Level &after) {
    size_t head = 0, tail = 0; // of window_, whose indices fall and whose `late` rises towards the head's successor
    int64_t b = after.high;
    bool any = false;
    for (int64_t a = band.high; a >= band.low; --a) {
      for (; b > a && b >= after.low; --b) {
        if (!next_[size_t(b)])
          continue;
        while (tail > head && positions_.late[window_[tail - 1]] >= positions_.late[size_t(b)])
          --tail;
        window_[tail++] = size_t(b);
      }
      while (tail > head && !fits(stage, a, int64_t(window_[head])))
        ++head;
      const bool can = tail > head && positions_.late[window_[head]] - positions_.early[size_t(a)] <= limit;
      now_[size_t(a)] = can;
      any |= can;
    }
    return any;
  }

  /// No bottleneck is below the mean, nor below the cheapest stage that holds what lies between two neighbouring
  /// positions.
  int64_t floor() const {
    int64_t least = (total() + problem_.stages - 1) / problem_.stages;
    const size_t last = positions_.at.size() - 1;
    std::vector<int64_t> cheapestEnd = positions_.late; // at a position or behind it
    for (size_t i = last; i-- > 0;)
      cheapestEnd[i] = std::min(cheapestEnd[i], cheapestEnd[i + 1]);
    int64_t cheapestBegin = positions_.early[0]; // at a position or before it
    for (size_t i = 0; i < last; ++i) {
      cheapestBegin = std::max(cheapestBegin, positions_.early[i]);
      least = std::max(least, cheapestEnd[i + 1] - cheapestBegin);
    }
    return least;
  }

  /// The least bottleneck in ticks; there is one.
  int64_t minBottleneck() {
    int64_t met = floor(), below = met - 1, step = std::max<int64_t>(1, met >> 12);
    for (const int64_t most = ceiling(); met < most && !meets(met); step *= 2) {
      below = met;
      met = std::min(most, met + step);
    }
    while (below + 1 < met) {
      const int64_t middle = std::midpoint(below, met);
      (meets(middle) ? met : below) = middle;
    }
    return met;
  }

  /// By stage, where it may begin and what is sent at least from there on, if no stage takes more than `limit`.
  std::vector<Level> fewestBytes(int64_t limit) {
    std::vector<Level> levels(size_t(problem_.stages) + 1);
    levels.back() = {positions_.last(), positions_.last(), {0}};
    for (int64_t stage = problem_.stages - 1; stage >= 0; --stage) {
      Level &level = levels[size_t(stage)];
      level = stage == 0 ? Level{0, 0, {}} : bandOf(stage, limit);
      fillBytes(stage, limit, level, levels[size_t(stage) + 1]);
    }
    return levels;
  }

  /// The ends b of a stage are taken in as far as its time allows, for one beginning a after the other; among those
  /// taken in, the ones behind a and within memory are a range.
  void fillBytes(int64_t stage, int64_t limit, Level &level, const Level &after) {
    const auto ascending = [](const Level &band, const std::vector<int64_t> &key) {
      std::vector<int64_t> order(size_t(std::max<int64_t>(0, band.high - band.low + 1)));
      std::iota(order.begin(), order.end(), band.low);
      std::sort(order.begin(), order.end(), [&](int64_t i, int64_t j) { return key[size_t(i)] < key[size_t(j)]; });
      return order;
    };
    const std::vector<int64_t> begins = ascending(level, positions_.early), ends = ascending(after, positions_.late);
    level.bytes.assign(begins.size(), none);
    const std::vector<int64_t> memoryEnds = endsWithinMemory(stage, level, after);
    RangeMinimum least(ends.size() + 1);
    size_t taken = 0;
    for (const int64_t a : begins) {
      for (; taken < ends.size(); ++taken) {
        const int64_t b = ends[taken], rest = after.at(b);
        if (positions_.late[size_t(b)] - positions_.early[size_t(a)] > limit)
          break;
        if (rest != none)
          least.lower(size_t(b - after.low), rest + positions_.sent[size_t(b)]);
      }
      const int64_t from = std::max(a + 1, after.low), to = memoryEnds[size_t(a - level.low)];
      if (from < to)
        level.bytes[size_t(a - level.low)] = least.minimum(size_t(from - after.low), size_t(to - after.low));
    }
  }

  /// For each a of `band`, behind the last b of `after` for which the stage [a, b) fits into memory.
  std::vector<int64_t> endsWithinMemory(int64_t stage, const Level &band, const Level &after) const {
    std::vector<int64_t> ends;
    int64_t end = after.low;
    for (int64_t a = band.low; a <= band.high; ++a) {
      while (end <= after.high && fits(stage, a, end))
        ++end;
      ends.push_back(end);
    }
    return ends;
  }

  /// Follows the fewest bytes, each time to the smallest position.
  Partition cutsOf(const std::vector<Level> &levels, int64_t limit) const {
    Partition result;
    int64_t a = 0;
    for (int64_t stage = 0; stage < problem_.stages; ++stage) {
      const Level &after = levels[size_t(stage) + 1];
      const int64_t bytes = levels[size_t(stage)].at(a);
      int64_t b = std::max(a + 1, after.low);
      while (after.at(b) == none || positions_.late[size_t(b)] - positions_.early[size_t(a)] > limit ||
             after.at(b) + positions_.sent[size_t(b)] != bytes)
        ++b; // the one that gave `bytes` stops this; it fits into memory, and so do those before it
      const int64_t begin = positions_.at[size_t(a)], end = positions_.at[size_t(b)];
      result.bottleneck = std::max(result.bottleneck, stageSeconds(problem_, begin, end));
      if (stage + 1 < problem_.stages)
        result.cuts.push_back(end);
      a = b;
    }
    return result;
  }

  const PartitionProblem &problem_;
  const Positions positions_;
  std::vector<uint8_t> now_, next_; // by position
  std::vector<size_t> window_;
};

} // namespace

std::optional<Partition> partition(const PartitionProblem &problem) { return Partitioner(problem).run(); }

} // namespace ds::scheduling
