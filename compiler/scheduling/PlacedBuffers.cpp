//===- PlacedBuffers.cpp - buffers in address order, and the gaps between them ---===//
#include "compiler/scheduling/PlacedBuffers.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

namespace ds::scheduling {

int64_t PlacedBuffers::lowestGap(int64_t bytes, int64_t from, std::span<const uint64_t> meets) const {
  int64_t free = from; // nothing that meets the buffer lies in [free, the walk's place)
  for (const Block &block : blocks_) {
    if (block.end <= free)
      continue;
    for (size_t i = 0; i < block.count; ++i) {
      if (block.offsets[i] - free >= bytes)
        return free; // those behind it are no nearer
      // Half of them meet it, which no branch foretells.
      const uint32_t other = block.buffers[i];
      const int64_t mask = -int64_t(meets[other / 64] >> (other % 64) & 1);
      free = std::max(free, block.ends[i] & mask);
    }
  }
  return free;
}

void PlacedBuffers::insert(size_t buffer, int64_t offset, int64_t end) {
  if (blocks_.empty())
    blocks_.emplace_back();
  auto block = std::upper_bound(blocks_.begin() + 1, blocks_.end(), offset,
                                [](int64_t one, const Block &other) { return one < other.offsets[0]; }) -
               1;
  if (block->count == Block::limit) {
    block = blocks_.insert(block + 1, block->takeUpper());
    if (offset < block->offsets[0])
      --block;
  }
  block->insert(buffer, offset, end);
}

void PlacedBuffers::Block::insert(size_t buffer, int64_t offset, int64_t bufferEnd) {
  const auto at = size_t(std::upper_bound(offsets.begin(), offsets.begin() + count, offset) - offsets.begin());
  const auto put = [&](auto &all, auto value) {
    std::copy_backward(all.begin() + at, all.begin() + count, all.begin() + count + 1);
    all[at] = value;
  };
  put(offsets, offset);
  put(ends, bufferEnd);
  put(buffers, uint32_t(buffer));
  ++count;
  end = std::max(end, bufferEnd);
}

PlacedBuffers::Block PlacedBuffers::Block::takeUpper() {
  constexpr size_t half = limit / 2;
  Block upper;
  upper.count = count - half;
  std::copy(offsets.begin() + half, offsets.begin() + count, upper.offsets.begin());
  std::copy(ends.begin() + half, ends.begin() + count, upper.ends.begin());
  std::copy(buffers.begin() + half, buffers.begin() + count, upper.buffers.begin());
  count = half;
  end = *std::max_element(ends.begin(), ends.begin() + half);
  upper.end = *std::max_element(upper.ends.begin(), upper.ends.begin() + upper.count);
  return upper;
}

} // namespace ds::scheduling
