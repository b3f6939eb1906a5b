//===- TileGemm.h - float32 products on the tile registers of Intel's AMX ---===//
#pragma once

#include "kernels/cpu/Gemm.h"
#include "kernels/cpu/TileBlocks.h"

namespace ds::kernels {

/// Whether the kernel, the machine and the environment let this process use tile registers for bfloat16 (AMX-BF16).
/// Linux grants them to a process that asks: arch_prctl(ARCH_REQ_XCOMP_PERM), documented in
/// Documentation/arch/x86/xstate.rst.
bool requestTiles();

/// Sets up eight tile registers of 16 rows of 64 bytes for the calling thread; only where requestTiles() is true.
void configureTiles();
/// Gives them up, or every change of threads would save 8 KB.
void releaseTiles();

/// The product on tiles, to float32's precision; only where requestTiles() is true. In smaller blocks, which gives the
/// same bits, where `scratch` has less than tileScratchBytes. False where `library` fails, which computes the blocks of
/// c whose operands hold infinities, NaNs or numbers beyond bfloat16's largest.
bool multiplyOnTiles(const Gemm<float> &gemm, Scratch scratch, bool (*library)(const Gemm<float> &)) noexcept;

} // namespace ds::kernels
