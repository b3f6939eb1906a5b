//===- ElementwiseProgram.h - the little programs of kernel `elementwise` --===//
//
// Kernel `elementwise` reads n input tensors, runs a straight-line program on every element and writes one or more
// result tensors of one shape. Inputs broadcast to that shape as in NumPy. Registers 0..n-1 are the inputs; instruction
// k defines register n + k. Compiler and kernels meet in the attribute `program`: five integers an instruction
// (opcode, result dtype, a, b, c; unused ones are -1), `constants` (doubles) and `results` (one register per output).
//
//===----------------------------------------------------------------------===//
#pragma once

#include "core/DType.h"
#include "kernels/HostDevice.h"

#include <cstdint>
#include <optional>
#include <string_view>

namespace ds::kernels {

/// The numbers are part of the plan format: append, never renumber.
enum class ElementwiseOp : int64_t {
  Constant = 0, // constants[a], converted to the result dtype
  Copy = 1,
  Cast = 2, // a converted as PyTorch's .to(): float to integer truncates, anything to bool is != 0
  // Binary, on two registers of the result dtype.
  Add = 10,
  Sub = 11,
  Mul = 12,
  Div = 13, // integers: truncates, as ONNX
  Pow = 14, // floats
  Max = 15, // NaN wins
  Min = 16,
  And = 17, // bool
  Or = 18,
  Xor = 19,
  // Comparisons, of two registers of one dtype; the result is bool.
  Equal = 30,
  Less = 31,
  LessEqual = 32,
  Greater = 33,
  GreaterEqual = 34,
  // Where: a (bool) ? b : c.
  Select = 40,
  // Unary.
  Neg = 50,
  Abs = 51,
  Sqrt = 52,
  Rsqrt = 53,
  Reciprocal = 54,
  Exp = 55,
  Log = 56,
  Erf = 57,
  Tanh = 58,
  Sigmoid = 59,
  Relu = 60,
  Sin = 61,
  Cos = 62,
  Not = 63, // bool
  IsNan = 64,
  Sign = 65,
  Floor = 66,
  Ceil = 67,
  Round = 68, // halves to even
  Atan = 69,
  Log1p = 70,
  Expm1 = 71,
  GeluTanh = 72, // GELU's approximation by tanh (GeluTanh.h)
  GeluTanhSlope = 73,
};

/// An opcode and the op that it computes, as the reference program spells it behind "train.".
struct ElementwiseName {
  ElementwiseOp op;
  std::string_view name;
};
inline constexpr ElementwiseName elementwiseNames[] = {{ElementwiseOp::Cast, "cast"},
                                                       {ElementwiseOp::Copy, "broadcast"},
                                                       {ElementwiseOp::Add, "add"},
                                                       {ElementwiseOp::Sub, "sub"},
                                                       {ElementwiseOp::Mul, "mul"},
                                                       {ElementwiseOp::Div, "div"},
                                                       {ElementwiseOp::Pow, "pow"},
                                                       {ElementwiseOp::Max, "max"},
                                                       {ElementwiseOp::Min, "min"},
                                                       {ElementwiseOp::And, "and"},
                                                       {ElementwiseOp::Or, "or"},
                                                       {ElementwiseOp::Xor, "xor"},
                                                       {ElementwiseOp::Equal, "equal"},
                                                       {ElementwiseOp::Less, "less"},
                                                       {ElementwiseOp::LessEqual, "less_equal"},
                                                       {ElementwiseOp::Greater, "greater"},
                                                       {ElementwiseOp::GreaterEqual, "greater_equal"},
                                                       {ElementwiseOp::Select, "select"},
                                                       {ElementwiseOp::Neg, "neg"},
                                                       {ElementwiseOp::Abs, "abs"},
                                                       {ElementwiseOp::Sqrt, "sqrt"},
                                                       {ElementwiseOp::Rsqrt, "rsqrt"},
                                                       {ElementwiseOp::Reciprocal, "reciprocal"},
                                                       {ElementwiseOp::Exp, "exp"},
                                                       {ElementwiseOp::Log, "log"},
                                                       {ElementwiseOp::Erf, "erf"},
                                                       {ElementwiseOp::Tanh, "tanh"},
                                                       {ElementwiseOp::Sigmoid, "sigmoid"},
                                                       {ElementwiseOp::Relu, "relu"},
                                                       {ElementwiseOp::Sin, "sin"},
                                                       {ElementwiseOp::Cos, "cos"},
                                                       {ElementwiseOp::Not, "not"},
                                                       {ElementwiseOp::IsNan, "is_nan"},
                                                       {ElementwiseOp::Sign, "sign"},
                                                       {ElementwiseOp::Floor, "floor"},
                                                       {ElementwiseOp::Ceil, "ceil"},
                                                       {ElementwiseOp::Round, "round"},
                                                       {ElementwiseOp::Atan, "atan"},
                                                       {ElementwiseOp::Log1p, "log1p"},
                                                       {ElementwiseOp::Expm1, "expm1"},
                                                       {ElementwiseOp::GeluTanh, "gelu_tanh"},
                                                       {ElementwiseOp::GeluTanhSlope, "gelu_tanh_slope"}};

/// The opcode of an op; constants have none of their own.
constexpr std::optional<ElementwiseOp> elementwiseNamed(std::string_view name) {
  for (const ElementwiseName &known : elementwiseNames)
    if (known.name == name)
      return known.op;
  return std::nullopt;
}

inline constexpr int64_t elementwiseInstructionWidth = 5;

/// Operands that an opcode reads from registers (Constant reads none: its `a` indexes `constants`).
constexpr DS_HOST_DEVICE int elementwiseArity(ElementwiseOp op) {
  if (op == ElementwiseOp::Constant)
    return 0;
  if (op == ElementwiseOp::Select)
    return 3;
  if (op >= ElementwiseOp::Add && op <= ElementwiseOp::GreaterEqual)
    return 2;
  return 1;
}

} // namespace ds::kernels
