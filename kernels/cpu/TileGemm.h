//===- TileGemm.h - float32 products on the tile registers of Intel's AMX ---===//
#pragma once

#include "kernels/cpu/Gemm.h"

namespace ds::kernels {

/// Whether the kernel, the machine and the environment let this process use tile registers for bfloat16 (AMX-BF16).
/// Linux grants them to a process that asks: arch_prctl(ARCH_REQ_XCOMP_PERM), documented in
/// Documentation/arch/x86/xstate.rst.
bool requestTiles();

/// From here on tiles are the faster way (docs/kernels.md): below, packing takes longer than it saves.
constexpr int64_t tiledSide = 128, tiledDepth = 64;

/// Whether a product is large enough; by its shape alone.
bool suitsTiles(const Gemm<float> &gemm);

/// The product on tiles, to float32's precision; only where requestTiles() is true. False where there is no memory for
/// 2 MB of workspace or for what `library` needs, which computes the blocks of c whose operands hold infinities, NaNs
/// or numbers beyond bfloat16's largest.
bool multiplyOnTiles(const Gemm<float> &gemm, bool (*library)(const Gemm<float> &)) noexcept;

} // namespace ds::kernels
