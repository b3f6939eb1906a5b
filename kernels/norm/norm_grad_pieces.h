//===- norm_grad_pieces.h - how the sums over rows of a norm's gradient are cut --===//
#pragma once

#include <algorithm>
#include <cstdint>

namespace ds::kernels {

/// Rows that one piece of layer_norm_grad or rms_norm_grad sums, on a CPU, before the pieces are added in order.
inline constexpr int64_t normGradRowsPerPiece = 64;

/// On CUDA a piece is a block of threads, and it has eight rows or more. Of narrow rows, whose blocks are small, there
/// are eight for each multiprocessor of an H100, of wide ones two.
constexpr int64_t cudaNormGradMostPieces(int64_t cols) {
  return 132 * std::clamp<int64_t>(6144 / std::max<int64_t>(cols, 1), 2, 8);
}
constexpr int64_t cudaNormGradRows(int64_t rows, int64_t cols) {
  const int64_t most = cudaNormGradMostPieces(cols);
  return std::max<int64_t>(8, (rows + most - 1) / most);
}
constexpr int64_t cudaNormGradPieces(int64_t rows, int64_t cols) {
  const int64_t perPiece = cudaNormGradRows(rows, cols);
  return (rows + perPiece - 1) / perPiece;
}

} // namespace ds::kernels
