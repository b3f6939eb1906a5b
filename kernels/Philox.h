//===- Philox.h - counter-based random numbers ----------------------------===//
//
// Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011). A draw depends only on (seed,
// optimizer step, global micro-batch, op id, element index): the same mask is drawn again when an op is recomputed or
// differentiated, and it does not depend on how a tensor is split or on the device.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "kernels/HostDevice.h"

#include <cstdint>

namespace ds::kernels {

struct PhiloxBlock {
  uint32_t words[4];

  constexpr DS_HOST_DEVICE uint32_t &operator[](uint64_t i) { return words[i]; }
  constexpr DS_HOST_DEVICE const uint32_t &operator[](uint64_t i) const { return words[i]; }
  friend constexpr bool operator==(const PhiloxBlock &, const PhiloxBlock &) = default;
};

/// Ten rounds over one counter; yields four 32-bit words.
constexpr DS_HOST_DEVICE PhiloxBlock philox(PhiloxBlock counter, uint64_t key) {
  uint32_t k0 = uint32_t(key), k1 = uint32_t(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = uint64_t(0xD2511F53u) * counter[0];
    const uint64_t p1 = uint64_t(0xCD9E8D57u) * counter[2];
    counter = {uint32_t(p1 >> 32) ^ counter[1] ^ k0, uint32_t(p1), uint32_t(p0 >> 32) ^ counter[3] ^ k1, uint32_t(p0)};
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return counter;
}

/// The key of one optimizer step: seed and step mixed by one Philox block.
constexpr DS_HOST_DEVICE uint64_t philoxStepKey(uint64_t seed, uint64_t step) {
  const PhiloxBlock mixed = philox({uint32_t(step), uint32_t(step >> 32), 0, 0}, seed);
  return uint64_t(mixed[1]) << 32 | mixed[0];
}

/// Four words for elements [4 * block, 4 * block + 4) of the tensor drawn by op `opId` in micro-batch `microbatch`.
constexpr DS_HOST_DEVICE PhiloxBlock philoxElements(uint64_t stepKey, uint32_t microbatch, uint32_t opId,
                                                    uint64_t block) {
  return philox({uint32_t(block), uint32_t(block >> 32), microbatch, opId}, stepKey);
}

/// The word of element `number`.
constexpr DS_HOST_DEVICE uint32_t philoxElement(uint64_t stepKey, uint32_t microbatch, uint32_t opId, uint64_t number) {
  return philoxElements(stepKey, microbatch, opId, number / 4)[number % 4];
}

/// An element is kept when its word is at least this: P(keep) = 1 - ratio to within 2^-32.
constexpr DS_HOST_DEVICE uint64_t dropoutThreshold(double ratio) { return uint64_t(ratio * 4294967296.0); }

/// A word as a number in [0, 1): a multiple of 2^-24 (float) or 2^-32 (double), which each type holds exactly.
template <typename T> constexpr DS_HOST_DEVICE T uniformOf(uint32_t word) {
  if constexpr (sizeof(T) == sizeof(float))
    return T(word >> 8) * T(0x1p-24f);
  else
    return T(word) * T(0x1p-32);
}

} // namespace ds::kernels
