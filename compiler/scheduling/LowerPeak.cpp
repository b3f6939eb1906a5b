//===- LowerPeak.cpp - lower the peak, move by move -----------------------===//
//
// Takes the instant at which most bytes live, and tries for each buffer that lives then without being needed: run its
// later users, and what they need, just before that instant, so that it is dead by then; or run its earlier users, and
// what needs them, just after it, so that it is not born. The move after which least lives in the stretch that it
// changes is made if that is less than the peak. So peaks vanish one by one until one of them withstands all moves.
// Work is counted, not timed: a graph of thousands of parallel branches has a move for each of them at every peak.
//
//===----------------------------------------------------------------------===//
#include "compiler/scheduling/OrderProblem.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

namespace ds::scheduling {
namespace {

class Lowering {
public:
  explicit Lowering(const OrderProblem &problem)
      : problem_(problem), order_(size_t(problem.commands)), needed_(order_.size()), needing_(order_.size()),
        used_(order_.size()), live_(order_.size()), marked_(order_.size(), false), left_(problem.buffers.size(), 0),
        seen_(problem.buffers.size(), false) {
    std::iota(order_.begin(), order_.end(), int64_t(0));
    position_ = order_;
    for (const auto &[first, second] : problem.edges) {
      needed_[size_t(second)].push_back(first);
      needing_[size_t(first)].push_back(second);
    }
    for (size_t b = 0; b < problem.buffers.size(); ++b) {
      const OrderProblem::Buffer &buffer = problem.buffers[b];
      lives_.push_back({buffer.users.front(), buffer.users.back()});
      for (int64_t user : buffer.users)
        used_[size_t(user)].push_back(b);
    }
    int64_t carried = 0;
    for (const OrderProblem::Buffer &buffer : problem.buffers)
      carried += buffer.before ? buffer.bytes : 0;
    const Stretch whole{0, order_};
    apply(whole, liveIn(whole, carried));
  }

  std::vector<int64_t> run() {
    // Every move takes at least one instant below the peak.
    for (int64_t moves = 0; moves < movesPerCommand * problem_.commands && placed_ < mostPlaced; ++moves)
      if (!lower(std::max_element(live_.begin(), live_.end()) - live_.begin()))
        break;
    return order_;
  }

private:
  static constexpr int64_t reach = 128; // commands that a move may pass: what it costs to try one
  static constexpr int64_t movesPerCommand = 4;
  /// Commands that all moves tried may place: seconds. Layers of known models take some 100 for each command.
  static constexpr int64_t mostPlaced = int64_t(1) << 24;

  /// Commands as they shall stand from position `begin` on.
  struct Stretch {
    int64_t begin;
    std::vector<int64_t> commands;
  };

  /// Positions of the first and the last user.
  struct Life {
    int64_t first, last;
  };

  /// Makes the best move that takes bytes from position `at`; false if none lowers it.
  bool lower(int64_t at) {
    const int64_t peak = live_[size_t(at)];
    std::optional<std::pair<Stretch, std::vector<int64_t>>> best;
    int64_t least = peak;
    const auto attempt = [&](std::optional<Stretch> stretch) {
      if (!stretch)
        return;
      placed_ += int64_t(stretch->commands.size());
      std::vector<int64_t> live = liveIn(*stretch, carriedInto(stretch->begin));
      const int64_t most = *std::max_element(live.begin(), live.end());
      if (most >= least)
        return;
      least = most;
      best = {std::move(*stretch), std::move(live)};
    };
    for (size_t b : usedWithinReach(at)) {
      const OrderProblem::Buffer &buffer = problem_.buffers[b];
      const auto [first, last] = lives_[b];
      if (buffer.bytes == 0)
        continue;
      if (!buffer.after && last > at && last - at <= reach && (buffer.before || first < at))
        attempt(advance(b, at));
      if (!buffer.before && first < at && at - first <= reach && (buffer.after || last > at))
        attempt(postpone(b, at));
    }
    if (!best)
      return false;
    apply(best->first, best->second);
    return true;
  }

  /// Buffers of which a move around position `at` may change the life, ascending.
  std::vector<size_t> usedWithinReach(int64_t at) const {
    std::vector<size_t> buffers;
    const int64_t end = std::min<int64_t>(at + reach + 1, int64_t(order_.size()));
    for (int64_t p = std::max<int64_t>(0, at - reach); p < end; ++p)
      buffers.insert(buffers.end(), used_[size_t(order_[size_t(p)])].begin(), used_[size_t(order_[size_t(p)])].end());
    std::ranges::sort(buffers);
    buffers.erase(std::unique(buffers.begin(), buffers.end()), buffers.end());
    return buffers;
  }

  /// Users of buffer `b` behind position `at`, and what they need, in front of it.
  std::optional<Stretch> advance(size_t b, int64_t at) {
    const int64_t last = lives_[b].last;
    for (int64_t user : problem_.buffers[b].users)
      if (position_[size_t(user)] >= at)
        marked_[size_t(position_[size_t(user)])] = true;
    for (int64_t p = last; p > at; --p)
      if (marked_[size_t(p)])
        for (int64_t other : needed_[size_t(order_[size_t(p)])])
          if (position_[size_t(other)] >= at)
            marked_[size_t(position_[size_t(other)])] = true;
    return rearranged(at, last + 1, at, true);
  }

  /// Users of buffer `b` in front of position `at`, and what needs them, behind it.
  std::optional<Stretch> postpone(size_t b, int64_t at) {
    const int64_t first = lives_[b].first;
    for (int64_t user : problem_.buffers[b].users)
      if (position_[size_t(user)] <= at)
        marked_[size_t(position_[size_t(user)])] = true;
    for (int64_t p = first; p < at; ++p)
      if (marked_[size_t(p)])
        for (int64_t other : needing_[size_t(order_[size_t(p)])])
          if (position_[size_t(other)] <= at)
            marked_[size_t(position_[size_t(other)])] = true;
    return rearranged(first, at + 1, at, false);
  }

  /// [begin, end) with marked positions first or last; nothing if `at` is among them. Takes the marks away.
  std::optional<Stretch> rearranged(int64_t begin, int64_t end, int64_t at, bool markedFirst) {
    const bool possible = !marked_[size_t(at)];
    Stretch stretch{begin, {}};
    for (const bool marked : {markedFirst, !markedFirst})
      for (int64_t p = begin; p < end; ++p)
        if (marked_[size_t(p)] == marked)
          stretch.commands.push_back(order_[size_t(p)]);
    std::fill(marked_.begin() + begin, marked_.begin() + end, false);
    return possible ? std::optional(std::move(stretch)) : std::nullopt;
  }

  /// Bytes that live across the boundary in front of position `p`.
  int64_t carriedInto(int64_t p) const {
    int64_t bytes = live_[size_t(p)];
    for (size_t b : used_[size_t(order_[size_t(p)])])
      if (!problem_.buffers[b].before && lives_[b].first == p)
        bytes -= problem_.buffers[b].bytes;
    return bytes;
  }

  /// Bytes that live at each place of `stretch`, if `carried` live in front of it.
  std::vector<int64_t> liveIn(const Stretch &stretch, int64_t carried) {
    const int64_t end = stretch.begin + int64_t(stretch.commands.size());
    for (int64_t command : stretch.commands)
      for (size_t b : used_[size_t(command)])
        ++left_[b];
    std::vector<int64_t> live;
    live.reserve(stretch.commands.size());
    for (int64_t command : stretch.commands) {
      int64_t dying = 0;
      for (size_t b : used_[size_t(command)]) {
        const OrderProblem::Buffer &buffer = problem_.buffers[b];
        if (!seen_[b] && !buffer.before && lives_[b].first >= stretch.begin)
          carried += buffer.bytes;
        seen_[b] = true;
        if (--left_[b] == 0 && !buffer.after && lives_[b].last < end)
          dying += buffer.bytes;
      }
      live.push_back(carried);
      carried -= dying;
    }
    for (int64_t command : stretch.commands)
      for (size_t b : used_[size_t(command)])
        seen_[b] = false;
    return live;
  }

  void apply(const Stretch &stretch, const std::vector<int64_t> &live) {
    for (size_t i = 0; i < stretch.commands.size(); ++i) {
      const size_t p = size_t(stretch.begin) + i;
      order_[p] = stretch.commands[i];
      position_[size_t(order_[p])] = int64_t(p);
      live_[p] = live[i];
    }
    for (int64_t command : stretch.commands)
      for (size_t b : used_[size_t(command)]) {
        Life &life = lives_[b];
        life = {problem_.commands, -1};
        for (int64_t user : problem_.buffers[b].users) {
          life.first = std::min(life.first, position_[size_t(user)]);
          life.last = std::max(life.last, position_[size_t(user)]);
        }
      }
  }

  const OrderProblem &problem_;
  std::vector<int64_t> order_, position_;              // commands by position, positions by command
  std::vector<std::vector<int64_t>> needed_, needing_; // commands by command
  std::vector<std::vector<size_t>> used_;              // buffers by command
  std::vector<int64_t> live_;                          // bytes by position
  std::vector<Life> lives_;                            // by buffer
  std::vector<bool> marked_;                           // by position; scratch
  std::vector<int64_t> left_;                          // uses by buffer; scratch
  std::vector<bool> seen_;                             // by buffer; scratch
  int64_t placed_ = 0;
};

} // namespace

std::vector<int64_t> orderForMemory(const OrderProblem &problem) {
  if (problem.commands == 0)
    return {};
  return Lowering(problem).run();
}

} // namespace ds::scheduling
