// quantize_fp8 with one scale: one launch finds the largest magnitude of each of a few blocks, the next takes the
// largest of these and writes the codes; transposed by squares of shared memory, so that both sides are whole lines.
#include "kernels/cuda/Launch.cuh"
#include "kernels/cuda/Packs.cuh"
#include "kernels/cuda/Reduce.cuh"
#include "kernels/fp8/fp8_pieces.h"
#include "kernels/fp8/quantize_fp8_blocks.h"

#include <cmath>

namespace ds::kernels::cuda {

namespace {

template <typename T, int width>
__global__ void __launch_bounds__(blockThreads) largestKernel(const T *x, float *largest, int64_t packs) {
  float own = 0;
  for (int64_t pack = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; pack < packs;
       pack += int64_t(gridDim.x) * blockDim.x) {
    const auto xs = packAt<width>(x, pack);
#pragma unroll
    for (int j = 0; j < width; ++j)
      own = Larger{}(std::fabs(wide(xs.values[j])), own);
  }
  own = blockReduce(own, Larger{}, 0.0F);
  if (threadIdx.x == 0)
    largest[blockIdx.x] = own;
}

/// The scale of all of x, from the largest magnitudes of `blocks` blocks; every thread gets it, one of all writes it.
__device__ inline Float8Scale scaleOf(Float8 format, const float *largest, int blocks, float *scale) {
  const int thread = threadIdx.x + blockDim.x * threadIdx.y;
  float all = 0;
  for (int b = thread; b < blocks; b += blockThreads)
    all = Larger{}(largest[b], all);
  const Float8Scale found = float8Scale(format, blockReduce(all, Larger{}, 0.0F));
  if (thread == 0 && blockIdx.x == 0)
    *scale = found.scale;
  return found;
}

template <typename T, int width, Float8 format>
__global__ void __launch_bounds__(blockThreads)
    codesKernel(const T *x, uint8_t *q, float *scale, const float *largest, int blocks, int64_t packs) {
  const float inverse = scaleOf(format, largest, blocks, scale).inverse;
  for (int64_t pack = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; pack < packs;
       pack += int64_t(gridDim.x) * blockDim.x) {
    const auto xs = packAt<width>(x, pack);
    Pack<uint8_t, width> codes;
#pragma unroll
    for (int j = 0; j < width; ++j)
      codes.values[j] = float8Bits(format, wide(xs.values[j]) * inverse);
    storePack(q, pack, codes);
  }
}

/// Blocks of [32, 8] threads go over squares of 32 x 32.
template <typename T, Float8 format>
__global__ void __launch_bounds__(blockThreads)
    transposedCodesKernel(const T *x, uint8_t *q, float *scale, const float *largest, int blocks, int64_t rows,
                          int64_t cols) {
  constexpr int edge = warpThreads;
  __shared__ uint8_t square[edge][edge + 4]; // rows a word apart in their banks
  const float inverse = scaleOf(format, largest, blocks, scale).inverse;
  const int64_t across = (cols + edge - 1) / edge, squares = across * ((rows + edge - 1) / edge);
  for (int64_t s = blockIdx.x; s < squares; s += gridDim.x) {
    const int64_t row = s / across * edge, col = s % across * edge;
    for (int r = threadIdx.y; r < edge; r += blockDim.y)
      if (row + r < rows && col + threadIdx.x < cols)
        square[r][threadIdx.x] = float8Bits(format, wide(x[(row + r) * cols + col + threadIdx.x]) * inverse);
    __syncthreads();
    for (int c = threadIdx.y; c < edge; c += blockDim.y)
      if (col + c < cols && row + threadIdx.x < rows)
        q[(col + c) * rows + row + threadIdx.x] = square[threadIdx.x][c];
    __syncthreads();
  }
}

template <typename T, int width, Float8 format>
void enqueue(const QuantizeFp8Call &call, std::span<void *const> operands, cudaStream_t stream) {
  using Operands = QuantizeFp8Call;
  const auto *x = at<const T>(operands, Operands::x);
  auto *q = at<uint8_t>(operands, Operands::q);
  auto *scale = at<float>(operands, Operands::scale), *largest = static_cast<float *>(call.workspace.at(operands));
  const int64_t packs = call.elements() / width;
  const unsigned blocks = blocksFor(packs, blockThreads, quantizeFp8Blocks);
  launch<largestKernel<T, width>>(blocks, blockThreads, stream, x, largest, packs);
  if (call.transposed)
    launch<transposedCodesKernel<T, format>>(blocksFor(piecesOf(call.rows, 32) * piecesOf(call.cols, 32), 1),
                                             dim3(warpThreads, blockThreads / warpThreads), stream, x, q, scale,
                                             largest, int(blocks), call.rows, call.cols);
  else
    launch<codesKernel<T, width, format>>(blocksFor(packs), blockThreads, stream, x, q, scale, largest, int(blocks),
                                          packs);
}

template <typename T, Float8 format>
void enqueue(const QuantizeFp8Call &call, std::span<void *const> operands, cudaStream_t stream) {
  if (inPacks<T>(call.elements(), {operands[QuantizeFp8Call::x], operands[QuantizeFp8Call::q]}))
    enqueue<T, packOf<T>, format>(call, operands, stream);
  else
    enqueue<T, 1, format>(call, operands, stream);
}

} // namespace

std::unique_ptr<Kernel> makeQuantizeFp8(const Invocation &invocation, const BuildOptions &) {
  const Call checked(invocation);
  checked.requireWorkspace(Device::Cuda);
  const QuantizeFp8Call call(checked);
  if (call.scales.block != Float8Block::Tensor)
    return launching(invocation, [call](const CallContext &context, std::span<void *const> operands) {
      enqueueQuantizeFp8Blocks(call, operands, streamOf(context));
    });
  return withFloat(call.dtype, [&](auto zero) -> std::unique_ptr<Kernel> {
    using T = decltype(zero);
    if constexpr (sizeof(T) == sizeof(double)) // which the call refuses
      return nullptr;
    else
      return launching(invocation, [call](const CallContext &context, std::span<void *const> operands) {
        if (call.format == Float8::E4M3)
          enqueue<T, Float8::E4M3>(call, operands, streamOf(context));
        else
          enqueue<T, Float8::E5M2>(call, operands, streamOf(context));
      });
  });
}

} // namespace ds::kernels::cuda
