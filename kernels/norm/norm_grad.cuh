//===- norm_grad.cuh - sums over rows of a norm's gradient ---------------===//
//
// dgamma and dbeta are sums over rows: a block of [32, 8] threads sums 32 columns of one piece of rows, and the pieces
// (norm_grad_pieces.h) are added in order.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "kernels/cuda/Launch.cuh"
#include "kernels/cuda/Number.cuh"
#include "kernels/norm/norm_grad_pieces.h"

namespace ds::kernels::cuda {

/// partial[piece, col] = sum over the piece's rows of term(row, col); behind them, with `second`, those of term2.
template <typename S, typename Term, typename Term2>
__global__ void __launch_bounds__(blockThreads)
    columnPiecesKernel(int64_t rows, int64_t cols, int64_t perPiece, S *partial, Term term, S *partial2, Term2 term2) {
  __shared__ S sums[2][8][warpThreads];
  const int64_t col = int64_t(blockIdx.x) * warpThreads + threadIdx.x, piece = blockIdx.y;
  const int64_t begin = piece * perPiece, end = begin + perPiece < rows ? begin + perPiece : rows;
  S sum = 0, sum2 = 0;
  if (col < cols)
    for (int64_t row = begin + threadIdx.y; row < end; row += blockDim.y) {
      sum += term(row, col);
      if (partial2)
        sum2 += term2(row, col);
    }
  sums[0][threadIdx.y][threadIdx.x] = sum;
  sums[1][threadIdx.y][threadIdx.x] = sum2;
  __syncthreads();
  if (threadIdx.y > 0 || col >= cols)
    return;
  for (unsigned j = 1; j < blockDim.y; ++j) {
    sum += sums[0][j][threadIdx.x];
    sum2 += sums[1][j][threadIdx.x];
  }
  partial[piece * cols + col] = sum;
  if (partial2)
    partial2[piece * cols + col] = sum2;
}

/// to[col] = the pieces' sums in order.
template <typename S>
__global__ void __launch_bounds__(blockThreads) addPiecesKernel(const S *partial, int64_t pieces, int64_t cols, S *to) {
  const int64_t stride = int64_t(gridDim.x) * blockDim.x;
  for (int64_t col = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; col < cols; col += stride) {
    S sum = 0;
    for (int64_t piece = 0; piece < pieces; ++piece)
      sum += partial[piece * cols + col];
    to[col] = sum;
  }
}

/// dgamma[col] = sum over rows of term, and dbeta (where it is not null) of term2.
template <typename S, typename Term, typename Term2>
void enqueueColumnSums(int64_t rows, int64_t cols, void *workspace, S *dgamma, Term term, S *dbeta, Term2 term2,
                       cudaStream_t stream) {
  if (cols == 0)
    return;
  const int64_t pieces = cudaNormGradPieces(rows);
  auto *partial = static_cast<S *>(workspace), *partial2 = dbeta ? partial + pieces * cols : nullptr;
  if (pieces > 0)
    launch<columnPiecesKernel<S, Term, Term2>>(dim3(unsigned((cols + warpThreads - 1) / warpThreads), unsigned(pieces)),
                                               dim3(warpThreads, 8), stream, rows, cols, cudaNormGradRows(rows),
                                               partial, term, partial2, term2);
  launch<addPiecesKernel<S>>(blocksFor(cols), blockThreads, stream, partial, pieces, cols, dgamma);
  if (dbeta)
    launch<addPiecesKernel<S>>(blocksFor(cols), blockThreads, stream, partial2, pieces, cols, dbeta);
}

} // namespace ds::kernels::cuda
