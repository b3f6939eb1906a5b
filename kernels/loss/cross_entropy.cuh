//===- cross_entropy.cuh - what cross_entropy and its gradient share -----===//
#pragma once

#include "kernels/cuda/Launch.cuh"
#include "kernels/cuda/Number.cuh"
#include "kernels/cuda/Reduce.cuh"
#include "kernels/cuda/Refuse.cuh"
#include "kernels/loss/cross_entropy_call.h"

namespace ds::kernels::cuda {

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
