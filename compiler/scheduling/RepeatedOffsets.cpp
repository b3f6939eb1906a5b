//===- RepeatedOffsets.cpp - first fit of buffers that live again and again --===//
//
// Which buffers ever live together is found once, by a sweep over time. What always lives lies at the bottom; the rest
// is placed buffer by buffer, each at the lowest offset free of those before it that it ever meets, in several orders.
// In each, what ended above the bound was placed too late, and moves half the way to the front for the next round
// (squeaky wheel optimization, Joslin and Clements, 1999). Crumbs find room in the end.
//
// Buffers of which each two ever meet lie side by side, though they never live all at once: such a set, found greedily,
// often proves that nothing better is left to find.
//
//===----------------------------------------------------------------------===//
#include "compiler/scheduling/RepeatedOffsets.h"

#include "compiler/scheduling/Overlaps.h"
#include "compiler/scheduling/PlacedBuffers.h"
#include "compiler/scheduling/TimeOrder.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

namespace ds::scheduling {
namespace {

class Packer {
public:
  Packer(const RepeatedProblem &problem, Wanted wanted)
      : problem_(problem), wanted_(wanted), overlaps_(problem.buffers.size()), time_(problem.buffers.size()),
        offsets_(problem.buffers.size()) {
    sweep();
    placeResidents();
  }

  std::vector<int64_t> run() {
    constexpr size_t patience = 10; // rounds of an order that bring nothing
    const size_t count = std::max<size_t>(movable_.size(), 1);
    const auto rounds = std::clamp<size_t>((size_t(1) << 26) / (count * count), 1, 40);
    int64_t least = std::numeric_limits<int64_t>::max();
    std::vector<size_t> best;
    for (size_t number = 0; number < orders && !isDone(least); ++number) {
      std::vector<size_t> order = startOf(number);
      int64_t own = std::numeric_limits<int64_t>::max();
      for (size_t round = 0, last = 0; round < std::min(rounds, last + patience) && !isDone(least); ++round) {
        const int64_t bytes = place(order);
        if (bytes < own) {
          own = bytes;
          last = round;
        }
        if (bytes < least) {
          least = bytes;
          best = order;
        }
        promote(order);
      }
    }
    stopped_ = least <= wanted_.enough;
    best.insert(best.end(), crumbs_.begin(), crumbs_.end());
    place(best);
    return offsets_;
  }

  /// Whether the run has left orders untried, since it had found enough.
  bool hasStopped() const { return stopped_; }

private:
  /// Whether more rounds are of no use, of which the best so far takes `least` bytes; before the first, the largest.
  bool isDone(int64_t least) {
    constexpr int64_t goodEnough = 100; // room of less than 1/100 is not worth another round
    if (least == std::numeric_limits<int64_t>::max())
      return false;
    return least <= wanted_.enough || least - bound_ <= bound_ / goodEnough || least <= provenBytes() ||
           aligned(provenBytes()) >= wanted_.below;
  }

  /// Bytes that no order takes less than.
  int64_t provenBytes() {
    if (!proven_) {
      proven_ = bytesOfMeeting(byMet());
      for (size_t number = 0; number < orders; ++number)
        proven_ = std::max(*proven_, bytesOfMeeting(startOf(number)));
    }
    return *proven_;
  }

  /// Bytes of residents and of buffers of which each two meet: of an order, whoever meets all that were taken.
  int64_t bytesOfMeeting(const std::vector<size_t> &order) const {
    std::vector<uint64_t> meetsAll(overlaps_.row(0).size(), ~uint64_t(0));
    int64_t sum = bottom_, unused = 0; // behind the last of them, at most
    for (size_t buffer : order) {
      if (!(meetsAll[buffer / 64] >> (buffer % 64) & 1))
        continue;
      const int64_t bytes = problem_.buffers[buffer].bytes, whole = aligned(bytes);
      sum += whole;
      unused = std::max(unused, whole - bytes);
      std::ranges::transform(meetsAll, overlaps_.row(buffer), meetsAll.begin(), std::bit_and());
    }
    return sum - unused;
  }

  /// What meets most others first.
  std::vector<size_t> byMet() const {
    std::vector<int> met(problem_.buffers.size());
    for (size_t buffer : movable_)
      for (const uint64_t word : overlaps_.row(buffer))
        met[buffer] += std::popcount(word);
    std::vector<size_t> order = movable_;
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return met[a] > met[b]; });
    return order;
  }

  std::vector<Change> changes() const {
    std::vector<Change> all;
    all.reserve(2 * problem_.lives.size());
    for (const RepeatedProblem::Life &life : problem_.lives) {
      all.push_back({life.begin, true, life.buffer});
      all.push_back({life.end, false, life.buffer});
    }
    sortByTime(all);
    return all;
  }

  /// Who meets whom, how long each lives in all, and the most bytes alive at once.
  void sweep() {
    std::vector<uint64_t> alive((problem_.buffers.size() + 63) / 64);
    int64_t live = 0;
    for (const auto &[time, born, buffer] : changes()) {
      time_[buffer] += born ? -time : time;
      live += born ? problem_.buffers[buffer].bytes : -problem_.buffers[buffer].bytes;
      bound_ = std::max(bound_, live);
      if (born)
        overlaps_.add(buffer, alive);
      alive[buffer / 64] ^= uint64_t(1) << (buffer % 64);
    }
    overlaps_.mirror();
  }

  /// Of each buffer, the most bytes that live with it.
  const std::vector<int64_t> &most() {
    if (most_.empty()) {
      most_.resize(problem_.buffers.size());
      const std::vector<int64_t> byLife = problem_.unfolded().peakDuringLife();
      for (size_t l = 0; l < byLife.size(); ++l)
        most_[problem_.lives[l].buffer] = std::max(most_[problem_.lives[l].buffer], byLife[l]);
    }
    return most_;
  }

  /// What lives from the first birth to the last death meets all others.
  void placeResidents() {
    constexpr int64_t crumbs = 4000; // as many of a crumb are less than all that lives at once
    int64_t begin = std::numeric_limits<int64_t>::max(), end = std::numeric_limits<int64_t>::min();
    for (const RepeatedProblem::Life &life : problem_.lives) {
      begin = std::min(begin, life.begin);
      end = std::max(end, life.end);
    }
    for (size_t i = 0; i < problem_.buffers.size(); ++i)
      if (problem_.buffers[i].bytes == 0)
        offsets_[i] = 0;
      else if (time_[i] == end - begin)
        bottom_ = aligned((offsets_[i] = bottom_) + problem_.buffers[i].bytes);
      else
        (problem_.buffers[i].bytes < bound_ / crumbs ? crumbs_ : movable_).push_back(i);
    std::stable_sort(crumbs_.begin(), crumbs_.end(),
                     [&](size_t a, size_t b) { return problem_.buffers[a].bytes > problem_.buffers[b].bytes; });
  }

  int64_t aligned(int64_t bytes) const { return (bytes + problem_.alignment - 1) & -problem_.alignment; }

  /// One of the orders to begin with.
  std::vector<size_t> startOf(size_t number) {
    const auto sorted = [&](auto key) {
      std::vector<size_t> order = movable_;
      std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return key(a) < key(b); });
      return order;
    };
    const std::vector<RepeatedProblem::Buffer> &all = problem_.buffers;
    switch (number) {
    case 0:
      return sorted([&](size_t i) { return std::tuple(-all[i].bytes, -time_[i], i); });
    case 1:
      return sorted([&](size_t i) { return std::tuple(-time_[i], -all[i].bytes, i); });
    case 2:
      return sorted([&](size_t i) { return std::tuple(-most()[i], -time_[i], i); });
    case 3:
      return sorted([&](size_t i) { return std::tuple(all[i].turn, -all[i].bytes, i); });
    default:
      return sorted([&](size_t i) { return std::tuple(all[i].turn, -time_[i], i); });
    }
  }

  /// Offsets by first fit; the bytes of the arena.
  int64_t place(const std::vector<size_t> &order) {
    placed_.clear();
    int64_t bytes = bottom_;
    for (size_t buffer : order) {
      const int64_t own = problem_.buffers[buffer].bytes;
      const int64_t free = placed_.lowestGap(own, bottom_, overlaps_.row(buffer));
      offsets_[buffer] = free;
      placed_.insert(buffer, free, aligned(free + own));
      bytes = std::max(bytes, free + own);
    }
    return bytes;
  }

  void promote(std::vector<size_t> &order) const {
    std::vector<std::pair<size_t, size_t>> places; // twice the place, so that promoted ones come before equals
    for (size_t place = 0; place < order.size(); ++place) {
      const bool late = offsets_[order[place]] + problem_.buffers[order[place]].bytes > bound_;
      places.emplace_back(late ? place : 2 * place + 1, order[place]);
    }
    std::stable_sort(places.begin(), places.end(), [](const auto &a, const auto &b) { return a.first < b.first; });
    std::transform(places.begin(), places.end(), order.begin(), [](const auto &place) { return place.second; });
  }

  static constexpr size_t orders = 5; // to begin with

  const RepeatedProblem &problem_;
  const Wanted wanted_;
  int64_t bound_ = 0; // the most bytes alive at once
  bool stopped_ = false;
  std::optional<int64_t> proven_;
  Overlaps overlaps_;
  std::vector<int64_t> time_; // by buffer: instants of life
  std::vector<int64_t> most_; // by buffer, once it is asked for: bytes
  std::vector<int64_t> offsets_;
  std::vector<size_t> movable_, crumbs_;
  PlacedBuffers placed_;
  int64_t bottom_ = 0; // bytes of what always lives
};

} // namespace

std::vector<int64_t> assignRepeated(const RepeatedProblem &problem, Wanted wanted) {
  Packer packer(problem, wanted);
  std::vector<int64_t> offsets = packer.run();
  if (packer.hasStopped() && problem.arenaBytes(offsets) > wanted.enough) // crumbs found no room
    offsets = Packer(problem, {.below = wanted.below}).run();
  return offsets;
}

std::vector<int64_t> assignInBlocks(const RepeatedProblem &problem, Wanted wanted) {
  std::map<int64_t, OffsetProblem> blocks;
  std::map<int64_t, std::vector<size_t>> members;
  for (const auto &[buffer, begin, end] : problem.lives)
    if (const int64_t block = problem.buffers[buffer].block; block != 0) {
      blocks[block].alignment = problem.alignment;
      blocks[block].buffers.push_back({problem.buffers[buffer].bytes, begin, end});
      members[block].push_back(buffer);
    }
  RepeatedProblem whole;
  whole.alignment = problem.alignment;
  std::vector<size_t> standsFor(problem.buffers.size());
  std::vector<int64_t> offsets(problem.buffers.size()); // in the block
  for (auto &[block, inside] : blocks) {
    const std::vector<int64_t> places = assignPromoted(inside);
    RepeatedProblem::Life life{whole.buffers.size(), inside.buffers[0].begin, inside.buffers[0].end};
    for (size_t m = 0; m < places.size(); ++m) {
      standsFor[members[block][m]] = life.buffer;
      offsets[members[block][m]] = places[m];
      life.begin = std::min(life.begin, inside.buffers[m].begin);
      life.end = std::max(life.end, inside.buffers[m].end);
    }
    whole.buffers.push_back({inside.arenaBytes(places), problem.buffers[members[block][0]].turn});
    whole.lives.push_back(life);
  }
  for (size_t i = 0; i < problem.buffers.size(); ++i)
    if (problem.buffers[i].block == 0) {
      standsFor[i] = whole.buffers.size();
      whole.buffers.push_back(problem.buffers[i]);
    }
  for (const auto &[buffer, begin, end] : problem.lives)
    if (problem.buffers[buffer].block == 0)
      whole.lives.push_back({standsFor[buffer], begin, end});
  const std::vector<int64_t> places = assignRepeated(whole, wanted);
  for (size_t i = 0; i < offsets.size(); ++i)
    offsets[i] += places[standsFor[i]];
  return offsets;
}

} // namespace ds::scheduling
