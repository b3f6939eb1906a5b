//===- Harness.h - one instruction, or a few, on given values --------------===//
#pragma once

#include <bit>
#include <cstdint>
#include <string>
#include <string_view>

namespace ds::ptx {

/// Bits of three values. Each is in %h1, %r1, %d1 and %p1 (and so on), as 16, 32, 64 bits and as its lowest bit.
struct Inputs {
  uint64_t a = 0, b = 0, c = 0;
};

/// Instructions, and what they make of the inputs.
struct Case {
  const char *instruction;
  Inputs inputs;
  uint64_t expected;
};

/// What the instructions leave in %h0, %r0, %d0 or %p0, whichever they name.
uint64_t evaluated(std::string_view instructions, Inputs inputs = {});

/// The PTX that does so.
std::string textOf(std::string_view instructions);

/// The sentence by which the instructions are refused when read, behind line and text; "" if they are not.
std::string refusal(std::string_view instructions);
/// Of a whole text.
std::string refusalOf(std::string_view text);

inline uint64_t bits(float value) { return std::bit_cast<uint32_t>(value); }
inline uint64_t bits(double value) { return std::bit_cast<uint64_t>(value); }
inline float floatOf(uint64_t value) { return std::bit_cast<float>(uint32_t(value)); }
inline double doubleOf(uint64_t value) { return std::bit_cast<double>(value); }

} // namespace ds::ptx
