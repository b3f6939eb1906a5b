//===- Numbers.h - values of PTX's types in 64 bits ------------------------===//
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace ds::ptx {

/// Bits of a float of 16 bits.
struct Half {
  uint16_t bits;
};
struct Brain {
  uint16_t bits;
};
template <typename T> inline constexpr bool isNarrow = std::is_same_v<T, Half> || std::is_same_v<T, Brain>;
template <typename T> inline constexpr bool isFloat = std::is_floating_point_v<T> || isNarrow<T>;

template <typename T> T as(uint64_t bits) {
  if constexpr (sizeof(T) == 8)
    return std::bit_cast<T>(bits);
  else if constexpr (sizeof(T) == 4)
    return std::bit_cast<T>(uint32_t(bits));
  else if constexpr (sizeof(T) == 2)
    return std::bit_cast<T>(uint16_t(bits));
  else
    return std::bit_cast<T>(uint8_t(bits));
}
template <typename T> uint64_t bitsOf(T value) {
  if constexpr (sizeof(T) == 8)
    return std::bit_cast<uint64_t>(value);
  else if constexpr (sizeof(T) == 4)
    return std::bit_cast<uint32_t>(value);
  else if constexpr (sizeof(T) == 2)
    return std::bit_cast<uint16_t>(value);
  else
    return std::bit_cast<uint8_t>(value);
}

/// The low bits as a signed number.
inline int64_t signedOf(uint64_t bits, int width) {
  return width == 64 ? int64_t(bits) : int64_t(bits << (64 - width)) >> (64 - width);
}
inline uint64_t lowBits(uint64_t bits, int width) { return width == 64 ? bits : bits & ((uint64_t(1) << width) - 1); }

/// To the nearest (ties to even), to zero, down, up.
enum class Rounding : uint8_t { Nearest, Zero, Down, Up };

inline double roundedToInteger(double value, Rounding rounding) {
  switch (rounding) {
  case Rounding::Nearest:
    return std::nearbyint(value); // nobody changes the host's mode
  case Rounding::Zero:
    return std::trunc(value);
  case Rounding::Down:
    return std::floor(value);
  case Rounding::Up:
    return std::ceil(value);
  }
  return value;
}

/// A binary format of IEEE 754: bits of the significand, exponents of the least and the largest normal number.
struct Format {
  int precision, least, most;
};
inline constexpr Format halfFormat{11, -14, 15}, brainFormat{8, -126, 127}, floatFormat{24, -126, 127};

/// The number of the format that `value` rounds to; infinities and what is no number stay.
inline double narrowed(double value, Format format, Rounding rounding) {
  if (!std::isfinite(value) || value == 0)
    return value;
  const int exponent = std::max(std::ilogb(value), format.least);
  const int unit = exponent - format.precision + 1; // the last bit's weight
  const double result = std::ldexp(roundedToInteger(std::ldexp(value, -unit), rounding), unit);
  const double largest = std::ldexp(2 - std::ldexp(1.0, 1 - format.precision), format.most);
  if (std::fabs(result) <= largest)
    return result;
  const bool outward = rounding == Rounding::Nearest || rounding == (value > 0 ? Rounding::Up : Rounding::Down);
  return std::copysign(outward ? std::numeric_limits<double>::infinity() : largest, value);
}

inline double widened(Brain value) { return std::bit_cast<float>(uint32_t(value.bits) << 16); }
inline double widened(Half value) {
  const double sign = (value.bits & 0x8000) != 0 ? -1 : 1;
  const int exponent = value.bits >> 10 & 31, fraction = value.bits & 0x3FF;
  if (exponent == 31)
    return fraction != 0 ? std::numeric_limits<double>::quiet_NaN() : sign * std::numeric_limits<double>::infinity();
  return sign * (exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(fraction + 1024, exponent - 25));
}
inline double widened(double value) { return value; }

inline Brain brainOf(double value, Rounding rounding = Rounding::Nearest) {
  if (std::isnan(value))
    return {0x7FFF};
  return {uint16_t(std::bit_cast<uint32_t>(float(narrowed(value, brainFormat, rounding))) >> 16)};
}
inline Half halfOf(double value, Rounding rounding = Rounding::Nearest) {
  if (std::isnan(value))
    return {0x7FFF};
  const double number = narrowed(value, halfFormat, rounding), magnitude = std::fabs(number);
  const auto sign = uint16_t(std::signbit(number) ? 0x8000 : 0);
  if (std::isinf(number))
    return {uint16_t(sign | 0x7C00)};
  if (magnitude < 0x1p-14)
    return {uint16_t(sign | uint16_t(magnitude * 0x1p24))};
  const int exponent = std::ilogb(magnitude);
  return {uint16_t(sign | (exponent + 15) << 10 | (int(std::ldexp(magnitude, 10 - exponent)) - 1024))};
}

/// What arithmetic makes of what is no number: a GPU's own.
template <typename T> T number(T value) {
  if constexpr (std::is_same_v<T, float>)
    return std::isnan(value) ? std::bit_cast<float>(0x7FFFFFFFu) : value;
  else
    return value;
}

/// A double as T, rounded to the nearest.
template <typename T> T rounded(double value) {
  if constexpr (std::is_same_v<T, Half>)
    return halfOf(value);
  else if constexpr (std::is_same_v<T, Brain>)
    return brainOf(value);
  else
    return number(T(value));
}

} // namespace ds::ptx
