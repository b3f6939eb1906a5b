//===- BFloat16.h - the upper half of a float32 ----------------------------===//
//
// Also for device code of CUDA: no library call.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "kernels/HostDevice.h"

#include <cstdint>

namespace ds {

/// The bits of a float32 as bfloat16: rounded to the nearest, ties to even; what is too large becomes infinite, a NaN
/// stays one and becomes quiet.
DS_HOST_DEVICE constexpr uint16_t bfloat16Bits(uint32_t float32Bits) {
  if ((float32Bits & 0x7FFFFFFF) > 0x7F800000)
    return uint16_t(float32Bits >> 16 | 0x40);
  return uint16_t((float32Bits + 0x7FFF + (float32Bits >> 16 & 1)) >> 16);
}

/// Eight bits of exponent and of precision, and no arithmetic of its own: it is computed with as float32.
struct BFloat16 {
  uint16_t bits = 0;

  BFloat16() = default;
  DS_HOST_DEVICE constexpr explicit BFloat16(float value) : bits(bfloat16Bits(__builtin_bit_cast(uint32_t, value))) {}
  DS_HOST_DEVICE constexpr operator float() const { return __builtin_bit_cast(float, uint32_t(bits) << 16); }
};

} // namespace ds
