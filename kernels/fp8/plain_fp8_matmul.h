//===- plain_fp8_matmul.h - fp8_matmul where cuBLASLt has no algorithm ----===//
#pragma once

#include "kernels/fp8/fp8_call.h"

#include <cuda_runtime_api.h>

#include <span>

namespace ds::kernels::cuda {

/// Our own kernel: right and slow.
void enqueuePlainFp8Matmul(const Fp8MatmulCall &call, std::span<void *const> operands, cudaStream_t stream);

} // namespace ds::kernels::cuda
