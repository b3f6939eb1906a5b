// block_sum_squares: partials[b] = sum of g[i]^2 over block b of `block` elements, in float64. A warp takes a block: 64
// elements make a leaf, a tree over the lanes; leaves are added neighbours first. Short blocks end in zeros, so the
// sums do not depend on how a tensor is cut or sharded.
#include "kernels/clip/block_sum_squares_call.h"
#include "kernels/cuda/Launch.cuh"
#include "kernels/cuda/Number.cuh"
#include "kernels/cuda/Reduce.cuh"

namespace ds::kernels::cuda {

namespace {

template <typename T> __device__ double squareAt(const T *g, int64_t i, int64_t elements) {
  const double x = i < elements ? double(wide(g[i])) : 0;
  return x * x;
}

template <typename T>
__global__ void __launch_bounds__(blockThreads)
    blockSumSquaresKernel(const T *g, double *partials, int64_t elements, int64_t block, int64_t blocks) {
  constexpr int warps = blockThreads / warpThreads;
  const int lane = threadIdx.x % warpThreads, leaves = int(block / sumSquaresLeaf);
  const int64_t stride = int64_t(gridDim.x) * warps;
  // The same for all lanes of a warp, which therefore stay together.
  for (int64_t b = int64_t(blockIdx.x) * warps + threadIdx.x / warpThreads; b < blocks; b += stride) {
    double own = 0; // lane l keeps leaf l
    for (int leaf = 0; leaf < leaves; ++leaf) {
      const int64_t first = b * block + leaf * sumSquaresLeaf + lane;
      const double sum = warpReduce(squareAt(g, first, elements) + squareAt(g, first + warpThreads, elements), Plus{});
      if (lane == leaf)
        own = sum;
    }
    for (int distance = 1; distance < leaves; distance *= 2)
      own += __shfl_xor_sync(fullWarp, own, distance);
    if (lane == 0)
      partials[b] = own;
  }
}

} // namespace

std::unique_ptr<Kernel> makeBlockSumSquares(const Invocation &invocation, const BuildOptions &) {
  const BlockSumSquaresCall call{Call(invocation)};
  static_assert(sumSquaresBlock / sumSquaresLeaf <= warpThreads && sumSquaresLeaf == 2 * warpThreads);
  return withFloat(call.dtype, [&](auto zero) {
    using T = decltype(zero);
    return launching(invocation, [call](const CallContext &context, std::span<void *const> operands) {
      const int64_t blocks = piecesOf(call.elements, call.block);
      if (blocks > 0)
        launch<blockSumSquaresKernel<T>>(blocksFor(blocks, blockThreads / warpThreads), blockThreads, streamOf(context),
                                         at<const T>(operands, 0), at<double>(operands, 1), call.elements, call.block,
                                         blocks);
    });
  });
}

} // namespace ds::kernels::cuda
