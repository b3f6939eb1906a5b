//===- Float16.h - IEEE 754's binary16 -------------------------------------===//
//
// Also for device code of CUDA: no library call.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "kernels/HostDevice.h"

#include <cstdint>

namespace ds {

/// The bits of a float32 as float16: rounded to the nearest, ties to even; what is too large becomes infinite, a NaN
/// stays one and becomes quiet.
DS_HOST_DEVICE constexpr uint16_t float16Bits(uint32_t float32Bits) {
  const uint32_t sign = float32Bits >> 16 & 0x8000, magnitude = float32Bits & 0x7FFFFFFF;
  if (magnitude > 0x7F800000) // NaN
    return uint16_t(sign | 0x7E00 | (magnitude >> 13 & 0x3FF));
  if (magnitude >= 0x477FF000) // 65520, halfway from the largest number to what would follow
    return uint16_t(sign | 0x7C00);
  if (magnitude >= 0x38800000) // 2^-14: the exponent's bias falls from 127 to 15
    return uint16_t(sign | (magnitude - 0x38000000 + 0xFFF + (magnitude >> 13 & 1)) >> 13);
  if (magnitude < 0x33000000) // less than half of 2^-24, the least number
    return uint16_t(sign);
  const uint32_t shift = 126 - (magnitude >> 23), mantissa = (magnitude & 0x7FFFFF) | 0x800000;
  const uint32_t units = mantissa >> shift, rest = mantissa & ((1u << shift) - 1), half = 1u << (shift - 1);
  return uint16_t(sign | (units + (rest > half || (rest == half && (units & 1) != 0))));
}

/// The bits of a float16 as float32, without loss.
DS_HOST_DEVICE constexpr uint32_t float32BitsOf(uint16_t float16Bits) {
  const uint32_t sign = uint32_t(float16Bits & 0x8000) << 16, exponent = float16Bits >> 10 & 0x1F;
  const uint32_t mantissa = float16Bits & 0x3FF;
  if (exponent == 0) // zero, or so many times 2^-24
    return sign | __builtin_bit_cast(uint32_t, float(mantissa) * 0x1p-24f);
  return sign | (exponent == 31 ? 255 : exponent + 112) << 23 | mantissa << 13;
}

/// Five bits of exponent, eleven of precision, and no arithmetic of its own: it is computed with as float32.
struct Float16 {
  uint16_t bits = 0;

  Float16() = default;
  DS_HOST_DEVICE constexpr explicit Float16(float value) : bits(float16Bits(__builtin_bit_cast(uint32_t, value))) {}
  DS_HOST_DEVICE constexpr operator float() const { return __builtin_bit_cast(float, float32BitsOf(bits)); }
};

} // namespace ds
