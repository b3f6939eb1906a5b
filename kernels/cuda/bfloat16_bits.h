//===- bfloat16_bits.h - bfloat16 by its bits, for host and GPU -----------===//
#pragma once

#include "kernels/HostDevice.h"

#include <bit>
#include <cstdint>
#include <cstring>

namespace ds::kernels::cuda {

inline DS_HOST_DEVICE float floatOfBits(uint32_t bits) {
  float x;
  memcpy(&x, &bits, sizeof(x));
  return x;
}

inline DS_HOST_DEVICE float fromBFloat16(uint16_t bits) { return floatOfBits(uint32_t(bits) << 16); }

/// To nearest, halves to even; a NaN stays one.
inline DS_HOST_DEVICE uint16_t toBFloat16(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof(bits));
  if (x != x)
    return uint16_t(bits >> 16 | 0x40);
  return uint16_t((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

} // namespace ds::kernels::cuda
