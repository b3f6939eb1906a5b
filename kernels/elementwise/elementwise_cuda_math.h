//===- elementwise_cuda_math.h - one opcode on one element ---------------===//
#pragma once

#include "kernels/ElementwiseProgram.h"
#include "kernels/GeluTanh.h"
#include "kernels/HostDevice.h"

#include <cmath>
#include <cstdint>

namespace ds::kernels::cuda {

template <typename T> DS_HOST_DEVICE T floatUnary(ElementwiseOp op, T a) {
  switch (op) {
  case ElementwiseOp::Neg:
    return -a;
  case ElementwiseOp::Abs:
    return std::fabs(a);
  case ElementwiseOp::Sqrt:
    return std::sqrt(a);
  case ElementwiseOp::Rsqrt:
    return T(1) / std::sqrt(a);
  case ElementwiseOp::Reciprocal:
    return T(1) / a;
  case ElementwiseOp::Exp:
    return std::exp(a);
  case ElementwiseOp::Log:
    return std::log(a);
  case ElementwiseOp::Log1p:
    return std::log1p(a);
  case ElementwiseOp::Expm1:
    return std::expm1(a);
  case ElementwiseOp::GeluTanh:
    return geluTanhOf(a);
  case ElementwiseOp::GeluTanhSlope:
    return geluTanhSlopeOf(a);
  case ElementwiseOp::Erf:
    return std::erf(a);
  case ElementwiseOp::Tanh:
    return std::tanh(a);
  case ElementwiseOp::Sigmoid: {
    const T small = std::exp(-std::fabs(a)), rest = T(1) / (T(1) + small);
    return a >= T(0) ? rest : a < T(0) ? small * rest : a;
  }
  case ElementwiseOp::Relu:
    return a < T(0) ? T(0) : a;
  case ElementwiseOp::Sin:
    return std::sin(a);
  case ElementwiseOp::Cos:
    return std::cos(a);
  case ElementwiseOp::Sign: // of NaN 0, as torch.sign
    return T((a > T(0)) - (a < T(0)));
  case ElementwiseOp::Floor:
    return std::floor(a);
  case ElementwiseOp::Ceil:
    return std::ceil(a);
  case ElementwiseOp::Round:
    return std::rint(a);
  case ElementwiseOp::Atan:
    return std::atan(a);
  default:
    return a; // Copy
  }
}

template <typename T> DS_HOST_DEVICE T floatBinary(ElementwiseOp op, T a, T b) {
  switch (op) {
  case ElementwiseOp::Add:
    return a + b;
  case ElementwiseOp::Sub:
    return a - b;
  case ElementwiseOp::Mul:
    return a * b;
  case ElementwiseOp::Div:
    return a / b;
  case ElementwiseOp::Pow:
    return std::pow(a, b);
  case ElementwiseOp::Max:
    return a != a || a > b ? a : b;
  case ElementwiseOp::Min:
    return a != a || a < b ? a : b;
  default:
    return a;
  }
}

/// Logic, on numbers that are 0 or 1 whatever their type.
template <typename T> DS_HOST_DEVICE bool logical(ElementwiseOp op, T a, T b) {
  switch (op) {
  case ElementwiseOp::And:
    return a != T(0) && b != T(0);
  case ElementwiseOp::Or:
    return a != T(0) || b != T(0);
  default:
    return (a != T(0)) != (b != T(0));
  }
}

template <typename T> DS_HOST_DEVICE bool compared(ElementwiseOp op, T a, T b) {
  switch (op) {
  case ElementwiseOp::Equal:
    return a == b;
  case ElementwiseOp::Less:
    return a < b;
  case ElementwiseOp::LessEqual:
    return a <= b;
  case ElementwiseOp::Greater:
    return a > b;
  default:
    return a >= b;
  }
}

constexpr DS_HOST_DEVICE bool isComparison(ElementwiseOp op) {
  return op >= ElementwiseOp::Equal && op <= ElementwiseOp::GreaterEqual;
}
constexpr DS_HOST_DEVICE bool isLogic(ElementwiseOp op) {
  return op == ElementwiseOp::And || op == ElementwiseOp::Or || op == ElementwiseOp::Xor;
}

/// In 64 bits; the caller wraps to the result's type. The divisor is not 0.
inline DS_HOST_DEVICE int64_t integerResult(ElementwiseOp op, int64_t a, int64_t b) {
  switch (op) {
  case ElementwiseOp::Add:
    return int64_t(uint64_t(a) + uint64_t(b));
  case ElementwiseOp::Sub:
    return int64_t(uint64_t(a) - uint64_t(b));
  case ElementwiseOp::Mul:
    return int64_t(uint64_t(a) * uint64_t(b));
  case ElementwiseOp::Div:
    return b == -1 ? int64_t(0 - uint64_t(a)) : a / b;
  case ElementwiseOp::Max:
    return a > b ? a : b;
  case ElementwiseOp::Min:
    return a < b ? a : b;
  case ElementwiseOp::And:
    return a & b;
  case ElementwiseOp::Or:
    return a | b;
  case ElementwiseOp::Xor:
    return a ^ b;
  case ElementwiseOp::Neg:
    return int64_t(0 - uint64_t(a));
  case ElementwiseOp::Abs:
    return a < 0 ? int64_t(0 - uint64_t(a)) : a;
  case ElementwiseOp::Relu:
    return a > 0 ? a : 0;
  case ElementwiseOp::Not:
    return !a;
  case ElementwiseOp::Sign:
    return (a > 0) - (a < 0);
  default:
    return a; // Copy
  }
}

/// A float as an integer of the type, as truncated() of calls/Numbers.h.
inline DS_HOST_DEVICE int64_t truncatedTo(DType type, double x) {
  if (type == DType::I32)
    return x > -2147483649.0 && x < 2147483648.0 ? int64_t(x) : INT32_MIN;
  return x >= -9223372036854775808.0 && x < 9223372036854775808.0 ? int64_t(x) : INT64_MIN;
}

/// Wraps to what an integer or bool of the type can hold.
inline DS_HOST_DEVICE int64_t wrapped(DType type, int64_t x) {
  switch (type) {
  case DType::Bool:
  case DType::U8:
    return uint8_t(x);
  case DType::U16:
    return uint16_t(x);
  case DType::U32:
    return uint32_t(x);
  case DType::I32:
    return int32_t(x);
  default:
    return x;
  }
}

} // namespace ds::kernels::cuda
