//===- norm_grad_pieces.h - how the sums over rows of a norm's gradient are cut --===//
#pragma once

#include <algorithm>
#include <cstdint>

namespace ds::kernels {

/// Rows that one piece of layer_norm_grad or rms_norm_grad sums, on a CPU, before the pieces are added in order.
inline constexpr int64_t normGradRowsPerPiece = 64;

/// On CUDA: at most so many pieces, enough to keep a GPU busy together with the cut along columns; of 32 rows or more.
inline constexpr int64_t cudaNormGradMaxPieces = 128;
constexpr int64_t cudaNormGradRows(int64_t rows) {
  return std::max<int64_t>(32, (rows + cudaNormGradMaxPieces - 1) / cudaNormGradMaxPieces);
}
constexpr int64_t cudaNormGradPieces(int64_t rows) {
  const int64_t perPiece = cudaNormGradRows(rows);
  return (rows + perPiece - 1) / perPiece;
}

} // namespace ds::kernels
