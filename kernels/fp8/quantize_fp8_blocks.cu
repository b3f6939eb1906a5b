// quantize_fp8 with scales of blocks. A line that lies as x does: a warp a block. One across x: a block of threads for
// 32 of them. A square: a block of threads, which reads it again from its caches. What is transposed goes through
// shared memory, so that both sides are whole lines.
#include "kernels/cuda/Launch.cuh"
#include "kernels/cuda/Packs.cuh"
#include "kernels/cuda/Reduce.cuh"
#include "kernels/fp8/quantize_fp8_blocks.h"

#include <cmath>

namespace ds::kernels::cuda {

namespace {

constexpr int edge = float8BlockEdge, warps = blockThreads / warpThreads, perLane = edge / warpThreads;

/// Where x is read, codes and scales are written.
template <typename T> struct Places {
  const T *x;
  uint8_t *q;
  float *scale;
  Float8Scales scales; ///< of q
};

/// Blocks of [32, 8] threads: a warp for 128 codes of a line of q, which lies as in x; neighbours have neighbouring
/// lines, as their scales have.
template <typename T, int width, Float8 format>
__global__ void __launch_bounds__(blockThreads) linesKernel(Places<T> to) {
  const Float8Scales &scales = to.scales;
  const int64_t count = scales.count();
  for (int64_t b = int64_t(blockIdx.x) * warps + threadIdx.y; b < count; b += int64_t(gridDim.x) * warps) {
    const int64_t line = b % scales.lines, first = b / scales.lines * edge;
    const auto placeOf = [&](int i) { return first + (i * warpThreads + int(threadIdx.x)) * width; };
    Pack<T, width> xs[perLane / width];
    float largest = 0;
#pragma unroll
    for (int i = 0; i < perLane / width; ++i) {
      if (placeOf(i) >= scales.depth)
        continue;
      xs[i] = packAt<width>(to.x, (line * scales.depth + placeOf(i)) / width);
#pragma unroll
      for (int j = 0; j < width; ++j)
        largest = Larger{}(std::fabs(wide(xs[i].values[j])), largest);
    }
    const Float8Scale scale = float8Scale(format, warpReduce(largest, Larger{}));
    if (threadIdx.x == 0)
      to.scale[b] = scale.scale;
#pragma unroll
    for (int i = 0; i < perLane / width; ++i) {
      if (placeOf(i) >= scales.depth)
        continue;
      Pack<uint8_t, width> codes;
#pragma unroll
      for (int j = 0; j < width; ++j)
        codes.values[j] = float8Bits(format, wide(xs[i].values[j]) * scale.inverse);
      storePack(to.q, (line * scales.depth + placeOf(i)) / width, codes);
    }
  }
}

/// Blocks of [32, 8] threads: 128 rows of 32 columns of x, which are lines of q.
template <typename T, Float8 format>
__global__ void __launch_bounds__(blockThreads) transposedLinesKernel(Places<T> to) {
  __shared__ uint8_t codes[warpThreads][edge + 4]; // lines a word apart in their banks
  __shared__ float largest[warps][warpThreads];
  const int64_t lines = to.scales.lines, depth = to.scales.depth;
  const int64_t across = (lines + warpThreads - 1) / warpThreads, tiles = across * to.scales.rows();
  for (int64_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
    const int64_t line = tile % across * warpThreads, own = line + threadIdx.x, first = tile / across * edge;
    float xs[edge / warps], most = 0;
#pragma unroll
    for (int i = 0; i < edge / warps; ++i) {
      const int64_t place = first + i * warps + threadIdx.y;
      xs[i] = own < lines && place < depth ? wide(to.x[place * lines + own]) : 0.0F;
      most = Larger{}(std::fabs(xs[i]), most);
    }
    largest[threadIdx.y][threadIdx.x] = most;
    __syncthreads();
    for (int w = 0; w < warps; ++w)
      most = Larger{}(largest[w][threadIdx.x], most);
    const Float8Scale scale = float8Scale(format, most);
    if (threadIdx.y == 0 && own < lines)
      to.scale[tile / across * lines + own] = scale.scale;
#pragma unroll
    for (int i = 0; i < edge / warps; ++i)
      codes[threadIdx.x][i * warps + threadIdx.y] = float8Bits(format, xs[i] * scale.inverse);
    __syncthreads();
    for (int l = threadIdx.y; l < warpThreads && line + l < lines; l += warps)
      for (int p = threadIdx.x; p < edge && first + p < depth; p += warpThreads)
        to.q[(line + l) * depth + first + p] = codes[l][p];
    __syncthreads();
  }
}

/// Blocks of [32, 8] threads: a square of q, or one behind its depth, whose scale is 1.
template <typename T, Float8 format>
__global__ void __launch_bounds__(blockThreads) squaresKernel(Places<T> to, bool isTransposed) {
  __shared__ uint8_t codes[edge][edge + 4]; // as they lie in q
  const int64_t lines = to.scales.lines, depth = to.scales.depth, count = to.scales.count();
  for (int64_t b = blockIdx.x; b < count; b += gridDim.x) {
    const int64_t line = b / to.scales.cols() * edge, first = b % to.scales.cols() * edge;
    // Rows and columns of x that are the square's.
    const int64_t row = isTransposed ? first : line, col = isTransposed ? line : first;
    const int64_t rows = isTransposed ? depth : lines, cols = isTransposed ? lines : depth;
    const auto forEach = [&](auto visit) {
      for (int r = threadIdx.y; r < edge && row + r < rows; r += warps)
        for (int c = threadIdx.x; c < edge && col + c < cols; c += warpThreads)
          visit(r, c, wide(to.x[(row + r) * cols + col + c]));
    };
    float largest = 0;
    forEach([&](int, int, float number) { largest = Larger{}(std::fabs(number), largest); });
    const Float8Scale scale = float8Scale(format, blockReduce(largest, Larger{}, 0.0F));
    if (threadIdx.x + threadIdx.y == 0)
      to.scale[b] = scale.scale;
    forEach([&](int r, int c, float number) {
      codes[isTransposed ? c : r][isTransposed ? r : c] = float8Bits(format, number * scale.inverse);
    });
    __syncthreads();
    for (int l = threadIdx.y; l < edge && line + l < lines; l += warps)
      for (int p = threadIdx.x; p < edge && first + p < depth; p += warpThreads)
        to.q[(line + l) * depth + first + p] = codes[l][p];
    __syncthreads();
  }
}

template <typename T, Float8 format>
void enqueue(const QuantizeFp8Call &call, std::span<void *const> operands, cudaStream_t stream) {
  using Operands = QuantizeFp8Call;
  const Places<T> to{at<const T>(operands, Operands::x), at<uint8_t>(operands, Operands::q),
                     at<float>(operands, Operands::scale), call.scales};
  const dim3 threads(warpThreads, warps);
  if (call.scales.count() == 0)
    return;
  if (call.scales.block == Float8Block::Square)
    launch<squaresKernel<T, format>>(blocksFor(call.scales.count(), 1), threads, stream, to, call.transposed);
  else if (call.transposed)
    launch<transposedLinesKernel<T, format>>(
        blocksFor(piecesOf(call.scales.lines, warpThreads) * call.scales.rows(), 1), threads, stream, to);
  else if (inPacks<T>(call.scales.depth, {to.x, to.q})) // of 16 bytes, which some lanes have together
    launch<linesKernel<T, perLane, format>>(blocksFor(call.scales.count(), warps), threads, stream, to);
  else
    launch<linesKernel<T, 1, format>>(blocksFor(call.scales.count(), warps), threads, stream, to);
}

} // namespace

void enqueueQuantizeFp8Blocks(const QuantizeFp8Call &call, std::span<void *const> operands, cudaStream_t stream) {
  withFloat(call.dtype, [&](auto zero) {
    using T = decltype(zero);
    if constexpr (sizeof(T) < sizeof(double)) { // which the call refuses
      if (call.format == Float8::E4M3)
        enqueue<T, Float8::E4M3>(call, operands, stream);
      else
        enqueue<T, Float8::E5M2>(call, operands, stream);
    }
  });
}

} // namespace ds::kernels::cuda
