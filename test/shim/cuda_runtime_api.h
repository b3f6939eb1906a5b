//===- cuda_runtime_api.h - what kernels need of CUDA, on a host ----------===//
//
// Stands in for the toolkit's header of this name where kernels are compiled as C++ (docs/gpu-shim.md). Streams are
// ignored: a launch has ended when it returns. What a kernel does wrong is the next cudaGetLastError().
//
//===----------------------------------------------------------------------===//
#pragma once

#include <cstddef>
#include <cstdint>

enum cudaError_t { cudaSuccess = 0, cudaErrorLaunchFailure = 719 };

using cudaStream_t = struct CUstream_st *;

struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
};

struct alignas(16) uint4 {
  unsigned x, y, z, w;
};

/// Of the launches since the last question.
cudaError_t cudaGetLastError();
/// The sentence that says what the last failed launch did wrong.
const char *cudaGetErrorString(cudaError_t error);
cudaError_t cudaGetDevice(int *device);
cudaError_t cudaMemsetAsync(void *address, int value, size_t bytes, cudaStream_t stream);
