//===- PlacedBuffers.h - buffers in address order, and the gaps between them ---===//
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace ds::scheduling {

/// Buffers that have a place, in address order, by short blocks: what lies below a gap that is looked for is left out
/// block by block, and one more moves few others.
class PlacedBuffers {
public:
  void clear() { blocks_.clear(); }

  /// The lowest offset from `from` on at which no buffer with a bit in `meets` takes any of `bytes`, which are above 0.
  int64_t lowestGap(int64_t bytes, int64_t from, std::span<const uint64_t> meets) const;

  /// [offset, end), with all bytes that no other may have: an aligned end.
  void insert(size_t buffer, int64_t offset, int64_t end);

private:
  struct Block {
    static constexpr size_t limit = 16;

    size_t count = 0;
    int64_t end = 0; // the largest of `ends`
    std::array<int64_t, limit> offsets, ends;
    std::array<uint32_t, limit> buffers;

    void insert(size_t buffer, int64_t offset, int64_t bufferEnd);
    /// Takes what stands in the upper half out.
    Block takeUpper();
  };

  std::vector<Block> blocks_; // none is empty
};

} // namespace ds::scheduling
