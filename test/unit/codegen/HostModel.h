//===- HostModel.h - compiler/codegen/Functions.h in the host's floats ----===//
#pragma once

#include "compiler/codegen/Functions.h"

#include <bit>
#include <cmath>
#include <cstdint>

namespace ds::codegen {

struct HostModel {
  using Float = float;
  using Int = uint32_t;
  using Long = uint64_t;
  using Bool = bool;

  Float number(float value) { return value; }
  Int integer(uint32_t value) { return value; }
  Long longInteger(uint64_t value) { return value; }
  Float fma(Float a, Float b, Float c) { return std::fma(a, b, c); }
  Float abs(Float a) { return std::fabs(a); }
  Float floor(Float a) { return std::floor(a); }
  Float withSignOf(Float a, Float b) { return std::copysign(a, b); }
  Int bits(Float a) { return std::bit_cast<uint32_t>(a); }
  Float fromBits(Int a) { return std::bit_cast<float>(a); }
  Float toFloat(Int a) { return float(int32_t(a)); }
  Float toFloat(Long a) { return float(int64_t(a)); }
  Long widen(Int a) { return a; }
  Int narrow(Long a) { return Int(a); }
  Int shiftRight(Int a, unsigned by) { return Int(int32_t(a) >> by); }
  Long shiftRight(Long a, unsigned by) { return a >> by; }
  bool isNegative(Int a) { return int32_t(a) < 0; }
  bool both(bool a, bool b) { return a && b; }
  bool either(bool a, bool b) { return a || b; }
  bool negate(bool a) { return !a; }
  template <typename T> T select(bool condition, T a, T b) { return condition ? a : b; }
};

} // namespace ds::codegen
