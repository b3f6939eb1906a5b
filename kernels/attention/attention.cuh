//===- attention.cuh - our own attention: products of tiles --------------===//
//
// A block of 4 warps keeps 16 rows of one side (queries, or keys for their gradients), four a warp, and meets the other
// side 32 elements at a time, one a lane. A tile of scores is made by `tileProducts`; `addWeighted` then adds rows of a
// third tensor, weighted by what the scores became, into columns that each lane keeps: lane + 32 * i.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "kernels/attention/attention_cuda_plan.h"
#include "kernels/cuda/Launch.cuh"
#include "kernels/cuda/Number.cuh"
#include "kernels/cuda/Reduce.cuh"

namespace ds::kernels::cuda {

inline constexpr int attentionKept = attentionColumns / warpThreads; // columns of a lane

template <typename S> struct AttentionTiles {
  S rows[attentionRows][attentionDepth];
  S across[warpThreads][attentionDepth + 1]; // one longer: lanes read different banks
  S values[warpThreads][attentionColumns];
};

template <typename T> struct AttentionMask {
  const void *data;

  __device__ bool isSeen(int64_t at) const { return static_cast<const uint8_t *>(data)[at] != 0; }
  __device__ Sum<T> added(int64_t at) const { return wide(static_cast<const T *>(data)[at]); }
};

/// The rows of one head of a tensor.
template <typename T> struct HeadTile {
  const T *first;
  int64_t stride, count; // elements from row to row; rows

  __device__ HeadTile(const T *tensor, const HeadRows &rows, int64_t count)
      : first(tensor + rows.first), stride(rows.stride), count(count) {}
  __device__ Sum<T> at(int64_t row, int64_t column) const { return wide(first[row * stride + column]); }
};

/// products[r] = dot(row firstRow + 4 * warp + r of `rows`, row firstAcross + lane of `across`), both of `length`
/// elements; rows outside of them are 0. All threads of the block take part.
template <typename T>
__device__ void tileProducts(AttentionTiles<Sum<T>> &tiles, const HeadTile<T> &rows, int64_t firstRow,
                             const HeadTile<T> &across, int64_t firstAcross, int64_t length,
                             Sum<T> (&products)[attentionRowsPerWarp]) {
  const int warp = threadIdx.x / warpThreads, lane = threadIdx.x % warpThreads;
  for (Sum<T> &product : products)
    product = 0;
  for (int64_t start = 0; start < length; start += attentionDepth) {
    __syncthreads(); // the tiles have been read
    for (int i = threadIdx.x; i < attentionRows * attentionDepth; i += blockDim.x) {
      const int64_t row = firstRow + i / attentionDepth, l = start + i % attentionDepth;
      tiles.rows[i / attentionDepth][i % attentionDepth] = row < rows.count && l < length ? rows.at(row, l) : Sum<T>(0);
    }
    for (int i = threadIdx.x; i < warpThreads * attentionDepth; i += blockDim.x) {
      const int64_t row = firstAcross + i / attentionDepth, l = start + i % attentionDepth;
      tiles.across[i / attentionDepth][i % attentionDepth] =
          row < across.count && l < length ? across.at(row, l) : Sum<T>(0);
    }
    __syncthreads();
    for (int l = 0; l < attentionDepth; ++l) {
      const Sum<T> other = tiles.across[lane][l];
      for (int r = 0; r < attentionRowsPerWarp; ++r)
        products[r] += tiles.rows[warp * attentionRowsPerWarp + r][l] * other;
    }
  }
}

/// sums[r][i] += sum over lanes j of weights[r] of lane j * value[firstAcross + j, firstColumn + lane + 32 * i]. All
/// threads of the block take part.
template <typename T>
__device__ void addWeighted(AttentionTiles<Sum<T>> &tiles, const Sum<T> (&weights)[attentionRowsPerWarp],
                            const HeadTile<T> &values, int64_t firstAcross, int64_t firstColumn, int64_t columns,
                            Sum<T> (&sums)[attentionRowsPerWarp][attentionKept]) {
  const int lane = threadIdx.x % warpThreads;
  __syncthreads(); // the tile has been read
  for (int i = threadIdx.x; i < warpThreads * attentionColumns; i += blockDim.x) {
    const int64_t row = firstAcross + i / attentionColumns, col = firstColumn + i % attentionColumns;
    tiles.values[i / attentionColumns][i % attentionColumns] =
        row < values.count && col < columns ? values.at(row, col) : Sum<T>(0);
  }
  __syncthreads();
  for (int j = 0; j < warpThreads; ++j)
    for (int r = 0; r < attentionRowsPerWarp; ++r) {
      const Sum<T> weight = __shfl_sync(fullWarp, weights[r], j);
      for (int i = 0; i < attentionKept; ++i)
        sums[r][i] += weight * tiles.values[j][lane + i * warpThreads];
    }
}

} // namespace ds::kernels::cuda
