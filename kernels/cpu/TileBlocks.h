//===- TileBlocks.h - blocks of a product on tile registers, and their bytes --===//
#pragma once

#include <algorithm>
#include <cstdint>

namespace ds::kernels {

/// From here on tiles are the faster way (docs/kernels.md): below, packing takes longer than it saves.
inline constexpr int64_t tiledSide = 128, tiledDepth = 64;

/// Whether a product is large enough; by its shape alone.
constexpr bool suitsTiles(int64_t rows, int64_t cols, int64_t depth) {
  return rows >= tiledSide && cols >= tiledSide && depth >= tiledDepth;
}

/// What a worker packs and sums at a time: at most 512 x 512 with 1.8 MB, within the 2 MB of second-level cache that
/// cores with AMX have. An element's bits do not depend on its block.
struct TileBlock {
  static constexpr int64_t panel = 32; ///< rows or columns of c that two tiles of an operand cover
  static constexpr int64_t depth = 128, terms = 3;
  static constexpr int64_t maxSide = 512, minSide = 64;

  int64_t rows, cols;

  constexpr int64_t packedBytes(int64_t side) const { return side * depth * terms * 2; }
  /// Both operands as bfloat16 terms, the sums, and two panels of products on their way into them.
  constexpr int64_t bytes() const {
    return packedBytes(rows) + packedBytes(cols) + (rows * cols + 2 * panel * panel) * 4;
  }

  /// The block for a product of [rows, cols].
  static constexpr TileBlock of(int64_t rows, int64_t cols) { return {side(rows), side(cols)}; }
  /// The largest block that fits, no smaller than minSide squared.
  static constexpr TileBlock within(TileBlock block, int64_t bytes) {
    while (block.bytes() > bytes && (block.rows > minSide || block.cols > minSide)) {
      int64_t &larger = block.rows >= block.cols ? block.rows : block.cols;
      larger = std::max(side(larger / 2), minSide);
    }
    return block;
  }

private:
  static constexpr int64_t side(int64_t size) { return std::min((size + panel - 1) / panel * panel, maxSide); }
};

/// Bytes that a worker can use for products of at most that many rows and columns; 0 where none suits tiles.
constexpr int64_t tileScratchBytes(int64_t rows, int64_t cols, int64_t depth) {
  return suitsTiles(rows, cols, depth) ? TileBlock::of(rows, cols).bytes() : 0;
}

} // namespace ds::kernels
