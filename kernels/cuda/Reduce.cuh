//===- Reduce.cuh - sums and maxima of a block, in one fixed order --------===//
//
// Trees by shape alone: the same bits each run. Every thread of the block must take part, with a block size that is a
// multiple of a warp.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "kernels/cuda/Grid.h"

namespace ds::kernels::cuda {

inline constexpr unsigned fullWarp = 0xffffffffu;

struct Plus {
  template <typename T> __host__ __device__ T operator()(T a, T b) const { return a + b; }
};
/// NaN wins.
struct Larger {
  template <typename T> __host__ __device__ T operator()(T a, T b) const { return a > b || a != a ? a : b; }
};

/// Combines the values of a warp; every lane gets the result.
template <typename T, typename Op> __device__ T warpReduce(T value, Op op) {
  for (int distance = warpThreads / 2; distance > 0; distance /= 2)
    value = op(value, __shfl_xor_sync(fullWarp, value, distance));
  return value;
}

/// Combines the values of a block; every thread gets the result. `neutral` is what changes nothing.
template <typename T, typename Op> __device__ T blockReduce(T value, Op op, T neutral) {
  __shared__ T partial[warpThreads];
  const int thread = threadIdx.x + blockDim.x * threadIdx.y, warps = blockDim.x * blockDim.y / warpThreads;
  value = warpReduce(value, op);
  __syncthreads(); // of an earlier call, everyone has read
  if (thread % warpThreads == 0)
    partial[thread / warpThreads] = value;
  __syncthreads();
  value = thread % warpThreads < warps ? partial[thread % warpThreads] : neutral;
  return warpReduce(value, op);
}

template <typename T> __device__ T blockSum(T value) { return blockReduce(value, Plus{}, T(0)); }

} // namespace ds::kernels::cuda
