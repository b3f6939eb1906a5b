//===- fp8_pieces.h - what the workspaces of FP8's kernels hold -----------===//
#pragma once

#include "kernels/fp8/fp8_call.h"

#include <cstdint>

namespace ds::kernels {

/// Blocks of a GPU that look for the largest magnitude: two for each multiprocessor of an H100.
inline constexpr int64_t quantizeFp8Blocks = 264;

/// Bytes of a matrix in float32, so that what follows lies at a multiple of 64.
constexpr int64_t fp8FactorBytes(int64_t elements) { return (elements * int64_t(sizeof(float)) + 63) / 64 * 64; }
/// Of both factors, as many columns as have one scale; and of the partial sums, where there are several blocks.
inline int64_t fp8FactorBytes(const Fp8MatmulCall &call) {
  const int64_t step = call.aScales.step();
  return fp8FactorBytes(call.m * step) + fp8FactorBytes(call.n * step) +
         (step < call.k ? fp8FactorBytes(call.m * call.n) : 0);
}

} // namespace ds::kernels
