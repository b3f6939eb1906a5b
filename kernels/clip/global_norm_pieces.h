//===- global_norm_pieces.h - how a norm over many tensors is cut on CUDA --===//
#pragma once

#include <cstdint>

namespace ds::kernels {

/// Tensors of one launch: its parameters, of which there are 32,764 bytes, say where each lies.
inline constexpr int64_t normTensors = 1024;
/// Most blocks of threads of one launch, and so its maxima and sums: as many as an H100 has multiprocessors.
inline constexpr int64_t normBlocks = 132;

constexpr int64_t normLaunches(int64_t tensors) { return (tensors + normTensors - 1) / normTensors; }
/// At most so many pieces.
constexpr int64_t normPieces(int64_t tensors) { return normLaunches(tensors) * normBlocks; }

} // namespace ds::kernels
