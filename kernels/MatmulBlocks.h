//===- MatmulBlocks.h - how matmul cuts its products ----------------------===//
//
// Shared by the kernel and by workspaceBytes of KernelSignatures.h, so that a plan reserves what the kernel can use and
// no more.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "kernels/KernelRegistry.h"

#include <algorithm>

namespace ds::kernels {

/// Where a workspace is smaller than this, the kernel packs into as many bytes of stack.
inline constexpr int64_t matmulStackBytes = 32 << 10;
/// Depth of one product of panels: a panel of b (32 KiB of float32) then stays in the first-level cache.
inline constexpr int64_t matmulDepth = 256;
/// Largest blocks of a and b that are packed at once in the shared form.
inline constexpr int64_t matmulBlockRows = 1024, matmulBlockCols = 1024;
/// Rows of one piece in the private form, and the most bytes of its packed operands: they should stay in the
/// second-level cache.
inline constexpr int64_t matmulStripeRows = 256, matmulStripeBytes = 1 << 20;
/// A single product of at most this many multiply-adds is not worth a second call to the workers.
inline constexpr double matmulSmallProduct = 1 << 18;
/// The largest tile of any instruction set: rows, and bytes of a row.
inline constexpr int64_t matmulTileRows = 14, matmulTileBytes = 128;

/// Bytes that products c[batches, m, n] = a[batches, m, k] b[batches, k, n] can use, whatever the instruction set.
inline int64_t matmulPackedBytes(int64_t batches, int64_t m, int64_t n, int64_t k, int64_t elementBytes, int workers) {
  const auto pieces = [](int64_t total, int64_t size) { return (total + size - 1) / size; };
  const int64_t depth = pieces(k, pieces(k, matmulDepth)), span = pieces(k, depth) * depth;
  const int64_t tileCols = matmulTileBytes / elementBytes;
  const auto packed = [&](int64_t rowLimit, int64_t tile) { // bytes of one element of depth
    return (std::min(m, rowLimit) + tile - 1 + pieces(std::min(n, matmulBlockCols), tileCols) * tileCols) *
           elementBytes;
  };
  const int64_t slot = pieces(packed(matmulStripeRows, matmulTileRows) * depth, 64) * 64;
  if (slot <= matmulStackBytes)
    return 0;
  const int64_t shared = packed(matmulBlockRows, matmulTileRows) * span;
  const int64_t ownSlots = slot * std::min<int64_t>(workers, batches * pieces(m, matmulStripeRows));
  if (double(m) * double(n) * double(k) <= matmulSmallProduct)
    return ownSlots;
  if (batches < 4 || (packed(matmulStripeRows, 1) - tileCols * elementBytes) * depth > matmulStripeBytes)
    return shared;
  return slot <= matmulStripeBytes ? ownSlots : std::max(shared, ownSlots); // the tile decides which
}

/// Bytes of the workspace of a call with operands a, b, [bias], c, without the machine's cap.
inline int64_t matmulWorkspaceBytes(std::span<const TensorType> operands, int workers) {
  const Shape &a = operands[0].shape, &b = operands[1].shape, &c = operands.back().shape;
  if (a.size() < 2 || b.size() < 2 || c.size() < 2 || elementCount(a) == 0 || elementCount(c) == 0)
    return 0;
  int64_t m = c[c.size() - 2], n = c.back();
  const bool transposed = a[a.size() - 2] != m;
  const int64_t k = transposed ? a[a.size() - 2] : a.back();
  int64_t batches = elementCount(c) / (m * n);
  if (!transposed && elementCount(b) == k * n) { // one b for all: one product of all rows
    m *= batches;
    batches = 1;
  }
  const int64_t bytes = matmulPackedBytes(batches, m, n, k, byteSize(operands[0].dtype), workers);
  return bytes == 0 ? 0 : (bytes + 63) / 64 * 64 + 63; // the kernel aligns to 64
}

} // namespace ds::kernels
