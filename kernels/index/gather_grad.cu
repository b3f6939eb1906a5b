// gather_grad: ddata = 0, then ddata[index[k]] += dy[k] in the order of k.
//
// A block owns a tile of ddata, [tileRows, tileCols], in shared memory. It goes through all indices in order, 1024 at a
// time, and lists those of its rows, in order (a scan over the threads' counts). Then each thread, which owns a column
// and every other row, adds what belongs to it. So no two threads touch one element, contributions are added in index
// order, and every element of ddata is written once, rounded once.
#include "kernels/cuda/Launch.cuh"
#include "kernels/cuda/Number.cuh"
#include "kernels/cuda/Reduce.cuh"
#include "kernels/index/gather_call.h"
#include "kernels/index/indices.cuh"

namespace ds::kernels::cuda {

namespace {

constexpr int tileCols = 128, perThread = 4, batch = blockThreads * perThread;
template <typename S> constexpr int tileRows = int(16384 / sizeof(S)) / tileCols; // 16 KiB

/// The sum of `value` over the threads before this one; `total` is that of all.
__device__ int blockScan(int value, int &total) {
  __shared__ int ends[blockThreads / warpThreads];
  const int lane = threadIdx.x % warpThreads, warp = threadIdx.x / warpThreads;
  int inclusive = value;
  for (int distance = 1; distance < warpThreads; distance *= 2) {
    const int before = __shfl_up_sync(fullWarp, inclusive, distance);
    if (lane >= distance)
      inclusive += before;
  }
  if (lane == warpThreads - 1)
    ends[warp] = inclusive;
  __syncthreads();
  int before = 0;
  total = 0;
  for (int w = 0; w < blockThreads / warpThreads; ++w) {
    before += w < warp ? ends[w] : 0;
    total += ends[w];
  }
  __syncthreads();
  return before + inclusive - value;
}

/// dy [outer, count, inner], ddata [outer, length, inner]; gridDim.x tiles of rows, y of columns, z of outer.
template <typename T, typename G>
__global__ void __launch_bounds__(blockThreads)
    gatherGradKernel(const T *dy, const Indices indices, G *ddata, int64_t outer, int64_t length, int64_t inner,
                     int64_t whole, int64_t first) {
  using S = Sum<T>;
  constexpr int rows = tileRows<S>;
  __shared__ S sums[rows][tileCols];
  __shared__ int64_t positions[batch];
  __shared__ int listedRows[batch];
  const int64_t firstRow = int64_t(blockIdx.x) * rows, col = int64_t(blockIdx.y) * tileCols + threadIdx.x % tileCols;
  const int half = threadIdx.x / tileCols; // the rows that this thread owns are half, half + 2, ...
  for (int64_t o = blockIdx.z; o < outer; o += gridDim.z) {
    for (int row = half; row < rows; row += blockThreads / tileCols)
      sums[row][threadIdx.x % tileCols] = 0;
    for (int64_t start = 0; start < indices.count; start += batch) {
      int64_t own[perThread];
      int mine = 0;
      for (int j = 0; j < perThread; ++j) {
        const int64_t k = start + threadIdx.x * perThread + j;
        // A refused one is no row, and -1; nor are those of other parts of a table.
        own[j] = k < indices.count ? indices.row(k, whole) - first - firstRow : -1;
        if (own[j] < 0 || own[j] >= rows)
          own[j] = -1;
        mine += own[j] >= 0;
      }
      int total = 0, next = blockScan(mine, total);
      for (int j = 0; j < perThread; ++j)
        if (own[j] >= 0) {
          positions[next] = start + threadIdx.x * perThread + j;
          listedRows[next++] = int(own[j]);
        }
      __syncthreads();
      if (col < inner)
        for (int i = 0; i < total; ++i)
          if (listedRows[i] % (blockThreads / tileCols) == half)
            sums[listedRows[i]][threadIdx.x % tileCols] += wide(dy[(o * indices.count + positions[i]) * inner + col]);
      __syncthreads(); // before the list is made anew
    }
    if (col < inner)
      for (int row = half; row < rows && firstRow + row < length; row += blockThreads / tileCols)
        ddata[(o * length + firstRow + row) * inner + col] = narrow<G>(sums[row][threadIdx.x % tileCols]);
  }
}

} // namespace

std::unique_ptr<Kernel> makeGatherGrad(const Invocation &invocation, const BuildOptions &) {
  const Call checked(invocation);
  const GatherCall call(checked, "ddata", "dy");
  return withSums(checked.dtype(), checked.dtype("ddata"), [&](auto zero, auto parameter) -> std::unique_ptr<Kernel> {
    using T = decltype(zero);
    using G = decltype(parameter);
    return launching(
        invocation,
        [call](const CallContext &context, std::span<void *const> operands) {
          const auto [outer, length, inner] = call.data;
          if (outer == 0 || length == 0 || inner == 0)
            return;
          const Indices indices(operands[1], call.indexType, call.count, context);
          const dim3 grid(unsigned((length + tileRows<Sum<T>> - 1) / tileRows<Sum<T>>),
                          unsigned((inner + tileCols - 1) / tileCols), blocksFor(outer, (outer + 65534) / 65535));
          launch<gatherGradKernel<T, G>>(grid, blockThreads, streamOf(context), at<const T>(operands, 0), indices,
                                         at<G>(operands, 2), outer, length, inner, call.whole, call.first);
        },
        indexRefusal("gather_grad", call.whole));
  });
}

} // namespace ds::kernels::cuda
