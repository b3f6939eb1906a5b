//===- Float8.h - numbers of 8 bits: E4M3 and E5M2 --------------------------===//
//
// As GPUs have them (Micikevicius et al., "FP8 Formats for Deep Learning", 2022): E4M3 has no infinity and one NaN for
// each sign, and reaches to 448; E5M2 is the upper half of a float16, and reaches to 57344. They are codes in tensors
// of bytes, beside scales by which they are multiplied. Also for device code of CUDA: no library call.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "kernels/HostDevice.h"

#include <cstdint>

namespace ds::kernels {

enum class Float8 : uint8_t { E4M3, E5M2 };

/// Bits of the mantissa.
DS_HOST_DEVICE constexpr int float8Mantissa(Float8 format) { return format == Float8::E4M3 ? 3 : 2; }
DS_HOST_DEVICE constexpr int float8Bias(Float8 format) { return format == Float8::E4M3 ? 7 : 15; }
DS_HOST_DEVICE constexpr float float8Largest(Float8 format) { return format == Float8::E4M3 ? 448.0F : 57344.0F; }

/// The code of the nearest number, ties to even; what is too large becomes the largest number, a NaN stays one.
DS_HOST_DEVICE constexpr uint8_t float8Bits(Float8 format, float value) {
  const auto bits = __builtin_bit_cast(uint32_t, value);
  const uint32_t sign = bits >> 24 & 0x80, magnitude = bits & 0x7FFFFFFF;
  const int mantissa = float8Mantissa(format), bias = float8Bias(format), dropped = 23 - mantissa;
  if (magnitude > 0x7F800000) // NaN
    return uint8_t(sign | 0x7F);
  if (magnitude >= __builtin_bit_cast(uint32_t, float8Largest(format)))
    return uint8_t(sign | (format == Float8::E4M3 ? 0x7E : 0x7B));
  if (magnitude >= uint32_t(128 - bias) << 23) { // the exponent's bias falls from 127
    const uint32_t rest = magnitude - (uint32_t(127 - bias) << 23);
    return uint8_t(sign | (rest + (1U << (dropped - 1)) - 1 + (rest >> dropped & 1)) >> dropped);
  }
  // So many times the least number, which is the last bit of a float32 of this size.
  const uint32_t size = uint32_t(127 + 23 + 1 - bias - mantissa) << 23;
  const float sum = __builtin_bit_cast(float, magnitude) + __builtin_bit_cast(float, size);
  return uint8_t(sign | (__builtin_bit_cast(uint32_t, sum) - size));
}

/// The number of a code, without loss.
DS_HOST_DEVICE constexpr float float8Value(Float8 format, uint8_t code) {
  const int mantissa = float8Mantissa(format), bias = float8Bias(format);
  const uint32_t sign = uint32_t(code & 0x80) << 24, magnitude = code & 0x7F;
  const uint32_t exponent = magnitude >> mantissa;
  if (exponent == 0) { // so many times the least number
    const float least = __builtin_bit_cast(float, uint32_t(127 + 1 - bias - mantissa) << 23);
    return __builtin_bit_cast(float, sign | __builtin_bit_cast(uint32_t, float(magnitude) * least));
  }
  if (format == Float8::E4M3 ? magnitude == 0x7F : exponent == 31) // NaN, of E5M2 infinity too
    return __builtin_bit_cast(float, sign | 0x7F800000 | (format == Float8::E4M3 ? 1 : magnitude & 3) << 21);
  return __builtin_bit_cast(float, sign | ((magnitude << (23 - mantissa)) + (uint32_t(127 - bias) << 23)));
}

/// Of a tensor or a block of it: numbers are codes times `scale`, codes are of numbers times `inverse`.
struct Float8Scale {
  float scale, inverse;
};

/// That which makes the largest magnitude of its numbers the largest number of the format. NaN where one is infinite or
/// NaN: then all are. Nothing but numbers below 2^-100 are zeros.
DS_HOST_DEVICE constexpr Float8Scale float8Scale(Float8 format, float largestMagnitude) {
  if (!(largestMagnitude <= 0x1.fffffep127F))
    return {__builtin_nanf(""), __builtin_nanf("")};
  if (largestMagnitude < 0x1p-100F)
    return {1, 1};
  return {largestMagnitude / float8Largest(format), float8Largest(format) / largestMagnitude};
}

/// What has a scale of its own: all codes; 128 of a line, which a product sums along; or those of 128 lines.
enum class Float8Block : uint8_t { Tensor, Line, Square };

inline constexpr int64_t float8BlockEdge = 128;

/// Where the scales of codes [lines, depth] lie, as cuBLASLt wants them: of lines [blocks, lines], of squares
/// [ceil(lines / 128), blocks up to a multiple of 4], with ceil(depth / 128) blocks; the last one may be shorter.
struct Float8Scales {
  Float8Block block;
  int64_t lines, depth;

  /// Codes of a line that have one scale.
  DS_HOST_DEVICE constexpr int64_t step() const {
    return block == Float8Block::Tensor || depth < float8BlockEdge ? depth : float8BlockEdge;
  }
  DS_HOST_DEVICE constexpr int64_t rows() const {
    return block == Float8Block::Line ? blocksOf(depth) : block == Float8Block::Square ? blocksOf(lines) : 1;
  }
  DS_HOST_DEVICE constexpr int64_t cols() const {
    return block == Float8Block::Line ? lines : block == Float8Block::Square ? (blocksOf(depth) + 3) / 4 * 4 : 1;
  }
  DS_HOST_DEVICE constexpr int64_t count() const { return rows() * cols(); }
  DS_HOST_DEVICE constexpr int64_t at(int64_t line, int64_t place) const {
    return block == Float8Block::Line     ? place / float8BlockEdge * cols() + line
           : block == Float8Block::Square ? line / float8BlockEdge * cols() + place / float8BlockEdge
                                          : 0;
  }

private:
  DS_HOST_DEVICE static constexpr int64_t blocksOf(int64_t size) {
    return (size + float8BlockEdge - 1) / float8BlockEdge;
  }
};

} // namespace ds::kernels
