//===- quantize_fp8_blocks.h - codes with a scale for each block ----------===//
#pragma once

#include "kernels/fp8/fp8_call.h"

#include <cuda_runtime_api.h>

#include <span>

namespace ds::kernels::cuda {

/// quantize_fp8 with `block`: numbers are read from memory once.
void enqueueQuantizeFp8Blocks(const QuantizeFp8Call &call, std::span<void *const> operands, cudaStream_t stream);

} // namespace ds::kernels::cuda
