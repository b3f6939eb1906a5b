//===- norm_grad.cuh - sums over rows of a norm's gradient ---------------===//
//
// dgamma and dbeta are sums over rows: a block of [32, 8] threads sums the columns of 32 packs in one piece of rows
// (norm_grad_pieces.h), and the same kernel then adds the pieces. A column's order is the same for packs of any width.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "kernels/cuda/Launch.cuh"
#include "kernels/cuda/Packs.cuh"
#include "kernels/norm/norm_grad_pieces.h"

#include <algorithm>

namespace ds::kernels::cuda {

inline constexpr int sumThreads = 8; ///< that share the rows of a column

/// to[piece, col] = sum over the piece's rows of what terms.add adds; `to2` likewise, where it is not null.
template <typename S, int width, typename Terms>
__global__ void __launch_bounds__(blockThreads)
    columnSumsKernel(int64_t rows, int64_t cols, int64_t perPiece, Terms terms, S *to, S *to2) {
  constexpr int blockCols = warpThreads * width;
  __shared__ S sums[2][sumThreads][blockCols];
  const int64_t first = int64_t(blockIdx.x) * blockCols, pack = first / width + threadIdx.x, piece = blockIdx.y;
  const int64_t begin = piece * perPiece, end = begin + perPiece < rows ? begin + perPiece : rows;
  Pack<S, width> own{}, own2{};
  if (pack * width < cols)
    for (int64_t row = begin + threadIdx.y; row < end; row += sumThreads)
      terms.add(row, pack, own, own2);
  for (int j = 0; j < width; ++j) {
    sums[0][threadIdx.y][threadIdx.x * width + j] = own.values[j];
    sums[1][threadIdx.y][threadIdx.x * width + j] = own2.values[j];
  }
  __syncthreads();
  const int thread = int(threadIdx.y * warpThreads + threadIdx.x);
  for (int i = thread; i < (to2 ? 2 : 1) * blockCols; i += sumThreads * warpThreads) {
    const int which = i / blockCols, col = i % blockCols;
    S sum = sums[which][0][col];
    for (int j = 1; j < sumThreads; ++j)
      sum += sums[which][j][col];
    if (first + col < cols)
      (which ? to2 : to)[piece * cols + first + col] = sum;
  }
}

/// The pieces' sums as terms.
template <typename S> struct PieceTerms {
  const S *partial, *partial2;
  int64_t cols;

  template <int width>
  __device__ void add(int64_t piece, int64_t pack, Pack<S, width> &sum, Pack<S, width> &sum2) const {
    static_assert(width == 1);
    sum.values[0] += partial[piece * cols + pack];
    if (partial2)
      sum2.values[0] += partial2[piece * cols + pack];
  }
};

/// dgamma[col], and dbeta[col] where it is not null, of terms in rows of T; `packed` as inPacks says.
template <typename T, typename Terms, typename S = Sum<T>>
void enqueueColumnSums(bool packed, int64_t rows, int64_t cols, void *workspace, Terms terms, S *dgamma, S *dbeta,
                       cudaStream_t stream) {
  if (cols == 0)
    return;
  constexpr int packCols = std::min(4, packOf<T>); // so that narrow rows still make many blocks
  const int64_t pieces = cudaNormGradPieces(rows), perPiece = cudaNormGradRows(rows);
  auto *partial = static_cast<S *>(workspace), *partial2 = dbeta ? partial + pieces * cols : nullptr;
  const dim3 threads(warpThreads, sumThreads);
  const auto blocks = [&](int64_t blockCols) { return unsigned((cols + blockCols - 1) / blockCols); };
  if (pieces > 0 && packed)
    launch<columnSumsKernel<S, packCols, Terms>>(dim3(blocks(warpThreads * packCols), unsigned(pieces)), threads,
                                                 stream, rows, cols, perPiece, terms, partial, partial2);
  else if (pieces > 0)
    launch<columnSumsKernel<S, 1, Terms>>(dim3(blocks(warpThreads), unsigned(pieces)), threads, stream, rows, cols,
                                          perPiece, terms, partial, partial2);
  launch<columnSumsKernel<S, 1, PieceTerms<S>>>(blocks(warpThreads), threads, stream, pieces, cols, pieces,
                                                PieceTerms<S>{partial, partial2, cols}, dgamma, dbeta);
}

} // namespace ds::kernels::cuda
