//===- batch_norm.cuh - a block goes through one channel -----------------===//
#pragma once

#include "kernels/cuda/Number.cuh"
#include "kernels/cuda/Reduce.cuh"

namespace ds::kernels::cuda {

inline constexpr int channelThreads = 512;

/// [samples, count, places].
struct Channels {
  int64_t samples, count, places;

  /// body(i) for the elements of channel c that fall to this thread.
  template <typename Body> __device__ void forEach(int64_t c, Body body) const {
    if (places >= blockDim.x) {
      for (int64_t n = 0; n < samples; ++n)
        for (int64_t i = threadIdx.x; i < places; i += blockDim.x)
          body((n * count + c) * places + i);
      return;
    }
    for (int64_t k = threadIdx.x; k < samples * places; k += blockDim.x)
      body((k / places * count + c) * places + k % places);
  }
};

} // namespace ds::kernels::cuda
