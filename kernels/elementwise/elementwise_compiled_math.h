//===- elementwise_compiled_math.h - opcodes as compiled kernels compute them --===//
//
// On a host, bit by bit: what a kernel of compiler/codegen does to an element.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "kernels/elementwise/elementwise_cuda_math.h"
#include "kernels/elementwise/elementwise_functions.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <utility>

namespace ds::kernels {

/// elementwise_functions.h in the host's floats.
struct HostFloats {
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

/// Math of FloatElementwise (elementwise_cuda_run.h). `products`: powers by some numbers are products, roots and
/// quotients, as they are in a kernel where the program says the number.
template <bool products> struct CompiledMath {
  static float unary(ElementwiseOp op, float a) {
    HostFloats floats;
    FloatFunctions<HostFloats> functions(floats);
    switch (op) {
    case ElementwiseOp::Exp:
      return functions.exp(a);
    case ElementwiseOp::Log:
      return functions.log(a);
    case ElementwiseOp::Log1p:
      return functions.log1p(a);
    case ElementwiseOp::Expm1:
      return functions.expm1(a);
    case ElementwiseOp::GeluTanh:
      return functions.geluTanh(a);
    case ElementwiseOp::GeluTanhSlope:
      return functions.geluTanhSlope(a);
    case ElementwiseOp::Erf:
      return functions.erf(a);
    case ElementwiseOp::Tanh:
      return functions.tanh(a);
    case ElementwiseOp::Sigmoid:
      return functions.sigmoid(a);
    case ElementwiseOp::Sin:
      return functions.sin(a);
    case ElementwiseOp::Cos:
      return functions.cos(a);
    case ElementwiseOp::Atan:
      return functions.atan(a);
    default:
      return cuda::floatUnary(op, a);
    }
  }

  static float binary(ElementwiseOp op, float a, float b) {
    if (op != ElementwiseOp::Pow)
      return cuda::floatBinary(op, a, b);
    if (products)
      for (const auto &[exponent, value] : {std::pair{1.0f, a},
                                            {2.0f, a * a},
                                            {3.0f, a * a * a},
                                            {0.5f, std::sqrt(a)},
                                            {-0.5f, 1 / std::sqrt(a)},
                                            {-1.0f, 1 / a},
                                            {-2.0f, 1 / (a * a)}})
        if (b == exponent)
          return value;
    HostFloats floats;
    return FloatFunctions<HostFloats>(floats).pow(a, b);
  }
};

} // namespace ds::kernels
