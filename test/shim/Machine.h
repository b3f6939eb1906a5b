//===- Machine.h - runs kernels on the host and watches them --------------===//
//
// Blocks run one after another, their threads as fibers. What a GPU leaves open is drawn: the order of blocks, and
// which thread goes on. A launch fails, and failure() says where and why,
//   - where a barrier or a shuffle does not find all of its threads, or finds them at another place of the kernel;
//   - where a thread reads shared memory that its block has not written;
//   - where two threads touch the same byte, one of them writes, and no barrier lies between (blocks meet at none);
//   - where an address lies outside of every buffer, or is no multiple of what is read there.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace shim {

/// Ascending order with seed 0, descending with 1, random with all others; of launches from here on.
void setOrder(uint64_t seed);

/// Device memory of `bytes`, of which kernels may touch the first `usable`. Multiples of 256.
std::byte *allocate(size_t bytes, size_t usable);
/// Whether all of the bytes are device memory that may be touched.
bool isUsable(const void *begin, size_t bytes);
/// Gives back all of it.
void releaseAll();

/// What the first failed launch did wrong, or nullptr; nothing runs until it is forgotten.
const char *failure();
void forgetFailure();

/// "layerNormKernel" of the __PRETTY_FUNCTION__ of launch(); another text as it is.
std::string kernelName(std::string_view pretty);

/// Since the start of the process.
struct Counts {
  int64_t launches = 0, blocks = 0, threads = 0, accesses = 0;
};
const Counts &counts();

} // namespace shim
