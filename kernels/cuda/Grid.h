//===- Grid.h - how much of a kernel runs at once -------------------------===//
#pragma once

#include <algorithm>
#include <cstdint>

namespace ds::kernels::cuda {

/// Threads of a block, unless a kernel says otherwise.
inline constexpr int blockThreads = 256;
/// Threads that go through the same instructions together.
inline constexpr int warpThreads = 32;
/// Most blocks of one dimension x: threads go on in strides of the grid where there is more to do.
inline constexpr int64_t mostBlocks = 1 << 16;

/// Multiprocessors of an H100 or H200: what grids are made for where a block has work to do before it strides.
inline constexpr int64_t multiprocessors = 132;

/// Blocks for `work` items, `perBlock` a block; at least 1, so that a launch is valid.
constexpr unsigned blocksFor(int64_t work, int64_t perBlock = blockThreads, int64_t most = mostBlocks) {
  return unsigned(std::clamp<int64_t>((work + perBlock - 1) / perBlock, 1, most));
}

/// Most threads of a block that shares one row: two blocks fit on a multiprocessor with 64 registers a thread.
inline constexpr int mostRowThreads = 512;

/// Threads of a block that shares one row of `length` elements: a multiple of a warp.
constexpr unsigned rowThreads(int64_t length, int64_t perThread = 4) {
  int64_t threads = warpThreads;
  while (threads < mostRowThreads && threads * perThread < length)
    threads *= 2;
  return unsigned(threads);
}

} // namespace ds::kernels::cuda
