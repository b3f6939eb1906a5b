//===- plain_conv.h - our own convolutions -------------------------------===//
//
// For float64, which few engines of cuDNN take, and for calls that it refuses; and what goes with cuDNN's.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "kernels/conv/conv_cuda_plan.h"

#include <cuda_runtime_api.h>

namespace ds::kernels::cuda {

/// first, second, result: x, w, y; or dy, w, dx; or dy, x, dw. `weightType`: of dw.
void enqueuePlainConv(ConvKind kind, const ConvCall &call, DType weightType, const void *first, const void *second,
                      void *result, cudaStream_t stream);
/// y[n, m, ...] += bias[m].
void enqueueConvBias(const ConvCall &call, const void *bias, void *y, cudaStream_t stream);
/// to[i] = from[i], of a float `type` of 16 bits; `to` is at a multiple of 32 bytes.
void enqueueWidened(DType type, const void *from, float *to, int64_t elements, cudaStream_t stream);

} // namespace ds::kernels::cuda
