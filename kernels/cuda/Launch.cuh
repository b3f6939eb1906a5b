//===- Launch.cuh - one way to launch a kernel ----------------------------===//
#pragma once

#include "kernels/cuda/Launch.h"

namespace ds::kernels::cuda {

/// Enqueues `kernel` on `stream`: blocks of threads, which on a host are fibers (test/shim). Cf. cudaLaunchKernel.
template <auto kernel, typename... Arguments>
void launch(dim3 blocks, dim3 threads, cudaStream_t stream, const Arguments &...arguments) {
#ifdef __CUDACC__
  kernel<<<blocks, threads, 0, stream>>>(arguments...);
#else
  shim::launch<kernel>(blocks, threads, stream, arguments...);
#endif
}

} // namespace ds::kernels::cuda
