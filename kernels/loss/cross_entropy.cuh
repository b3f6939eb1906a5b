//===- cross_entropy.cuh - what cross_entropy and its gradient share -----===//
#pragma once

#include "kernels/cuda/Launch.cuh"
#include "kernels/cuda/Packs.cuh"
#include "kernels/cuda/Reduce.cuh"
#include "kernels/cuda/Refuse.cuh"
#include "kernels/loss/cross_entropy_call.h"

#include <algorithm>

namespace ds::kernels::cuda {

/// Most threads of a block that shares a row, few enough that a multiprocessor has registers for two blocks, of
/// bfloat16 for four: while one block adds up, another loads.
inline constexpr int lossThreads = 256;
/// Threads of the one block that goes through the labels or losses of all rows.
inline constexpr int allRowsThreads = 1024;
/// Packs of packOf<T> elements that a thread has in flight. Rows are cut into packs even where no 16 bytes can be moved
/// at once, so that a row's sums have one order, by its classes alone: padding does not change a bit.
inline constexpr int packsAtOnce = 4;

template <typename T> unsigned lossThreadsFor(int64_t elements) {
  return std::min<unsigned>(rowThreads(elements, packsAtOnce * packOf<T>), lossThreads);
}

/// The pack of a row that begins at element `first`, of which those before `end` are wanted. `packed`: all at once,
/// where that is 16 bytes in the row and at an address for it.
template <bool packed, typename T> __device__ Pack<T, packOf<T>> rowPack(const T *row, int64_t first, int64_t end) {
  Pack<T, packOf<T>> all{};
  if constexpr (packed) {
    if (first < end)
      all = packAt<packOf<T>>(row, first / packOf<T>);
  } else {
    for (int j = 0; j < packOf<T>; ++j)
      if (first + j < end)
        all.values[j] = row[first + j];
  }
  return all;
}

/// Labels that are not ignored, for every thread of a block.
inline __device__ int64_t countLabels(const int64_t *labels, int64_t rows, int64_t ignored) {
  int64_t count = 0;
  for (int64_t row = threadIdx.x; row < rows; row += blockDim.x)
    count += labels[row] != ignored;
  return blockSum(count);
}

inline Refusal labelRefusal(const char *kernel, const CrossEntropyCall &call) {
  return [kernel, classes = call.classes, ignored = call.ignoreIndex](int64_t label) {
    return Status::failure("kernel '%s': label %lld is out of range [0, %lld) and is not the ignored label %lld",
                           kernel, static_cast<long long>(label), static_cast<long long>(classes),
                           static_cast<long long>(ignored));
  };
}

} // namespace ds::kernels::cuda
