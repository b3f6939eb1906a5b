//===- strided_copy.cuh - runs a CopyPlan --------------------------------===//
#pragma once

#include "kernels/cuda/Launch.cuh"
#include "kernels/cuda/Number.cuh"
#include "kernels/movement/copy_cuda_plan.h"

#include <cstddef>

namespace ds::kernels::cuda {

template <typename T>
__global__ void __launch_bounds__(blockThreads) copyKernel(const CopySpace space, const T *from, T *to) {
  const int64_t stride = int64_t(gridDim.x) * blockDim.x;
  for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < space.elements; i += stride) {
    const CopySpace::Offsets offsets = space.at(i);
    to[offsets.to] = from[offsets.from];
  }
}

/// A block turns one square at a time: [32, 8] threads, each of which moves four elements. Rows of the square are one
/// longer in shared memory, so that its columns lie in different banks.
template <typename T>
__global__ void __launch_bounds__(blockThreads)
    turnKernel(const CopySpace around, const CopyDimension across, const CopyDimension along, const T *from, T *to) {
  __shared__ T square[copySquare][copySquare + 1];
  const int64_t down = (along.size + copySquare - 1) / copySquare, wide = (across.size + copySquare - 1) / copySquare;
  const int64_t squares = around.elements * down * wide;
  for (int64_t s = blockIdx.x; s < squares; s += gridDim.x) {
    const CopySpace::Offsets start = around.at(s / (down * wide));
    const int64_t firstAlong = s / wide % down * copySquare, firstAcross = s % wide * copySquare;
    for (int64_t j = threadIdx.y; j < copySquare; j += blockDim.y) { // threadIdx.x runs along `from`
      const int64_t i = firstAcross + threadIdx.x, k = firstAlong + j;
      if (i < across.size && k < along.size)
        square[j][threadIdx.x] = from[start.from + i + k * along.from];
    }
    __syncthreads();
    for (int64_t j = threadIdx.y; j < copySquare; j += blockDim.y) { // and here along `to`
      const int64_t i = firstAcross + j, k = firstAlong + threadIdx.x;
      if (i < across.size && k < along.size)
        to[start.to + i * across.to + k] = square[threadIdx.x][j];
    }
    __syncthreads();
  }
}

/// Enqueues the copy of `plan`; `from` and `to` are the starts of the tensors.
inline void enqueueCopy(const CopyPlan &plan, const void *from, void *to, cudaStream_t stream) {
  if (plan.empty)
    return;
  const auto *source = static_cast<const std::byte *>(from) + plan.fromOffset;
  auto *target = static_cast<std::byte *>(to) + plan.toOffset;
  if (plan.turns) {
    const int64_t squares = plan.plain.elements * ((plan.across.size + copySquare - 1) / copySquare) *
                            ((plan.along.size + copySquare - 1) / copySquare);
    withBytes(plan.plain.elementBytes, [&](auto zero) {
      using T = decltype(zero);
      launch<turnKernel<T>>(blocksFor(squares, 1), dim3(copySquare, 8), stream, plan.plain, plan.across, plan.along,
                            reinterpret_cast<const T *>(source), reinterpret_cast<T *>(target));
    });
    return;
  }
  const auto multiple = uintptr_t(plan.wide.elementBytes);
  const bool aligned =
      reinterpret_cast<uintptr_t>(source) % multiple == 0 && reinterpret_cast<uintptr_t>(target) % multiple == 0;
  const CopySpace &space = aligned ? plan.wide : plan.plain;
  withBytes(space.elementBytes, [&](auto zero) {
    using T = decltype(zero);
    launch<copyKernel<T>>(blocksFor(space.elements), blockThreads, stream, space, reinterpret_cast<const T *>(source),
                          reinterpret_cast<T *>(target));
  });
}

} // namespace ds::kernels::cuda
