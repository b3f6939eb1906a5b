//===- FirstFit.cpp - largest buffer first, lowest free offset ------------===//
//
// Placed buffers stand in address order, in blocks of a few hundred. For the next buffer one walk upwards finds the
// lowest gap among those that live with it. A block of which none does is skipped whole, and so is one of which all do
// and that has no such gap. Quadratic at worst, with a small constant; on training graphs most blocks are skipped.
//
//===----------------------------------------------------------------------===//
#include "compiler/scheduling/OffsetProblem.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

namespace ds::scheduling {
namespace {

struct Placed {
  int64_t offset, end; // bytes; the end is aligned
  int64_t born, dead;  // life
};

/// A run of placed buffers in address order, and what is so of all of them.
struct Block {
  static constexpr size_t limit = 256;

  std::vector<Placed> placed;
  int64_t born, lastBorn, firstDead, dead;
  int64_t end, widestGap; // bytes; the gap is between two of them, whatever their lives

  void sumUp() {
    born = firstDead = std::numeric_limits<int64_t>::max();
    lastBorn = dead = std::numeric_limits<int64_t>::min();
    widestGap = 0;
    end = placed.front().offset;
    for (const Placed &buffer : placed) {
      born = std::min(born, buffer.born);
      lastBorn = std::max(lastBorn, buffer.born);
      firstDead = std::min(firstDead, buffer.dead);
      dead = std::max(dead, buffer.dead);
      widestGap = std::max(widestGap, buffer.offset - end);
      end = std::max(end, buffer.end);
    }
  }
  bool isApartFrom(int64_t from, int64_t to) const { return born >= to || dead <= from; }
  bool isWholeWithin(int64_t from, int64_t to) const { return lastBorn < to && firstDead > from; }
};

class AddressOrder {
public:
  /// The lowest aligned offset at which `bytes` are free throughout [born, dead).
  int64_t lowestGap(int64_t bytes, int64_t born, int64_t dead) const {
    int64_t free = 0; // nothing that lives with the buffer lies in [free, the walk's place)
    for (const Block &block : blocks_) {
      if (block.isApartFrom(born, dead))
        continue;
      if (block.isWholeWithin(born, dead) && block.widestGap < bytes && block.placed.front().offset - free < bytes) {
        free = std::max(free, block.end);
        continue;
      }
      for (const Placed &other : block.placed) {
        if (other.born >= dead || other.dead <= born)
          continue;
        if (other.offset - free >= bytes)
          return free;
        free = std::max(free, other.end);
      }
    }
    return free;
  }

  void insert(const Placed &buffer) {
    auto block = std::upper_bound(blocks_.begin(), blocks_.end(), buffer.offset,
                                  [](int64_t offset, const Block &b) { return offset < b.placed.front().offset; });
    if (block != blocks_.begin())
      --block;
    if (block == blocks_.end())
      block = blocks_.insert(block, Block{});
    block->placed.insert(std::upper_bound(block->placed.begin(), block->placed.end(), buffer.offset,
                                          [](int64_t offset, const Placed &p) { return offset < p.offset; }),
                         buffer);
    block->sumUp();
    if (block->placed.size() > Block::limit)
      split(block);
  }

private:
  void split(std::vector<Block>::iterator block) {
    Block lower, upper;
    const auto middle = block->placed.begin() + Block::limit / 2;
    lower.placed.assign(block->placed.begin(), middle);
    upper.placed.assign(middle, block->placed.end());
    lower.sumUp();
    upper.sumUp();
    *block = std::move(lower);
    blocks_.insert(block + 1, std::move(upper));
  }

  std::vector<Block> blocks_; // none is empty
};

} // namespace

std::vector<int64_t> assignInOrder(const OffsetProblem &problem, std::span<const size_t> order) {
  std::vector<int64_t> offsets(problem.buffers.size(), 0);
  AddressOrder placed;
  for (size_t i : order) {
    const OffsetProblem::Buffer &buffer = problem.buffers[i];
    if (buffer.bytes == 0)
      continue; // takes no room
    offsets[i] = placed.lowestGap(buffer.bytes, buffer.begin, buffer.end);
    const int64_t end = (offsets[i] + buffer.bytes + problem.alignment - 1) & -problem.alignment;
    placed.insert({offsets[i], end, buffer.begin, buffer.end});
  }
  return offsets;
}

std::vector<int64_t> assignFirstFit(const OffsetProblem &problem) {
  const std::vector<OffsetProblem::Buffer> &buffers = problem.buffers;
  std::vector<size_t> order(buffers.size());
  std::iota(order.begin(), order.end(), size_t(0));
  // Among equals: the earlier, then the longer life, then the order of the problem.
  const auto rank = [&](size_t i) { return std::tuple(-buffers[i].bytes, buffers[i].begin, -buffers[i].end, i); };
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return rank(a) < rank(b); });
  return assignInOrder(problem, order);
}

} // namespace ds::scheduling
