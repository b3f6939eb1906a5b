//===- Gemm.h - one matrix product on the calling thread ------------------===//
#pragma once

#include "kernels/cpu/Scratch.h"

#include <cstdint>

namespace ds::kernels {

/// c [rows, cols] = or += op(a) [rows, depth] op(b) [depth, cols]; strides lie between rows as stored. Where there is a
/// bias [cols], c = op(a) op(b) + bias in every row, and `add` is false.
template <typename T> struct Gemm {
  const T *a, *b;
  T *c;
  int64_t rows, cols, depth, aStride, bStride, cStride;
  bool transA, transB, add;
  const T *bias = nullptr;
};

/// False where a library has no memory. In float32 on tile registers where the machine has them (TileGemm.h), else one
/// dnnl_sgemm on one thread; in float64, which only checks of gradients use, three loops over blocks. The bits depend
/// on the shape, the strides and the instruction set alone. `scratch` is the worker's (tileScratchBytes of
/// TileBlocks.h).
bool multiply(const Gemm<float> &gemm, Scratch scratch) noexcept;
bool multiply(const Gemm<double> &gemm, Scratch scratch) noexcept;

} // namespace ds::kernels
