//===- reduce_cuda_pieces.h - how a GPU cuts a reduction of few results --===//
#pragma once

#include <algorithm>
#include <cstdint>

namespace ds::kernels {

/// Elements of one piece of a reduction of `length` elements each to `outputs` results; the pieces are one where there
/// are results enough to keep a GPU busy. They are added in order.
constexpr int64_t cudaReduceElements(int64_t outputs, int64_t length) {
  constexpr int64_t least = 256, busy = 1 << 16, mostPieces = 128;
  const int64_t wanted = std::clamp<int64_t>(busy / std::max<int64_t>(outputs, 1), 1, mostPieces);
  return std::max(least, (length + wanted - 1) / wanted);
}
constexpr int64_t cudaReducePieces(int64_t outputs, int64_t length) {
  const int64_t perPiece = cudaReduceElements(outputs, length);
  return std::max<int64_t>(1, (length + perPiece - 1) / perPiece);
}

} // namespace ds::kernels
