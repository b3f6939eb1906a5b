//===- FixedSum.h - a sum of float64 whose order does not matter ----------===//
//
// Numbers that are not negative are added as integers of 128 bits, in units of 2^-96 times the power of two of the
// largest: any tree gives the same bits, and zeros in between change nothing. What is cut off is below 2^-96 of the
// largest number, each.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "kernels/HostDevice.h"

#include <cmath>
#include <cstdint>

namespace ds::kernels::cuda {

__extension__ typedef unsigned __int128 Fixed;

/// `value`, at most `largest` and not negative, in units of the largest; both are finite and `largest` is not 0.
inline DS_HOST_DEVICE Fixed toFixed(double value, double largest) {
  int exponent = 0, unit = 0;
  const double mantissa = std::frexp(value, &exponent);
  std::frexp(largest, &unit);
  const auto bits = Fixed(std::ldexp(mantissa, 53)); // a whole number below 2^53
  const int shift = exponent - unit + 96 - 53;       // at most 43
  return shift >= 0 ? bits << shift : shift > -64 ? bits >> -shift : Fixed(0);
}

inline DS_HOST_DEVICE double fromFixed(Fixed sum, double largest) {
  int unit = 0;
  std::frexp(largest, &unit);
  const double high = double(uint64_t(sum >> 64)), low = double(uint64_t(sum));
  return std::ldexp(high, unit - 96 + 64) + std::ldexp(low, unit - 96);
}

} // namespace ds::kernels::cuda
