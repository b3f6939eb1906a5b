//===- Shuffle.cpp - a seeded permutation per epoch -----------------------===//
#include "runtime/data/Shuffle.h"

#include "kernels/Philox.h"
#include <cstdint>

namespace ds::runtime {
namespace {

constexpr int rounds = 8;
/// Keeps these draws apart from every step's: it stands where a draw of a step has its op.
constexpr uint32_t shuffleStream = 0xFFFFFFFE;

uint64_t permute(uint64_t value, int halfBits, uint64_t key) noexcept {
  const uint64_t mask = (uint64_t(1) << halfBits) - 1;
  uint64_t left = value >> halfBits, right = value & mask;
  for (uint32_t round = 0; round < rounds; ++round) {
    const auto words = kernels::philox({uint32_t(right), uint32_t(right >> 32), round, shuffleStream}, key);
    const uint64_t mixed = (uint64_t(words[1]) << 32 | words[0]) & mask;
    const uint64_t next = left ^ mixed;
    left = right;
    right = next;
  }
  return left << halfBits | right;
}

} // namespace

uint64_t shuffled(uint64_t position, uint64_t count, uint64_t seed, uint64_t epoch) noexcept {
  if (count < 2)
    return position;
  int halfBits = 1;
  while (halfBits < 31 && uint64_t(1) << 2 * halfBits < count)
    ++halfBits;
  const uint64_t key = kernels::philoxStepKey(seed, epoch);
  do
    position = permute(position, halfBits, key);
  while (position >= count);
  return position;
}

} // namespace ds::runtime
