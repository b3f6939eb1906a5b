//===- Algebra.cpp - arithmetic on a node's values --------------------------------===//
#include "compiler/import/ops/Algebra.h"

namespace ds::import {

Value Algebra::number(DType dtype, double value) const {
  if (ds::isFloat(dtype))
    return floatScalar(dtype, value);
  return Value::of(foldCast(Constant::integer(int64_t(value)), dtype, node_.budget()));
}

#define DS_BINARY(NAME, KIND)                                                                                          \
  Value Algebra::NAME(const Value &x, const Value &y) const {                                                          \
    return binary<train::KIND##Op>(node_, BinaryFold::KIND, x, y);                                                     \
  }
DS_BINARY(add, Add)
DS_BINARY(sub, Sub)
DS_BINARY(mul, Mul)
DS_BINARY(div, Div)
DS_BINARY(max, Max)
DS_BINARY(min, Min)
DS_BINARY(both, And)
DS_BINARY(either, Or)
DS_BINARY(exactlyOne, Xor)
DS_BINARY(equal, Equal)
DS_BINARY(less, Less)
DS_BINARY(greater, Greater)
DS_BINARY(power, Pow)
#undef DS_BINARY

#define DS_UNARY(NAME, KIND)                                                                                           \
  Value Algebra::NAME(const Value &x) const { return unary<train::KIND##Op>(node_, UnaryFold::KIND, x); }
DS_UNARY(negation, Not)
DS_UNARY(neg, Neg)
DS_UNARY(abs, Abs)
DS_UNARY(sqrt, Sqrt)
DS_UNARY(exp, Exp)
DS_UNARY(log, Log)
DS_UNARY(log1p, Log1p)
DS_UNARY(expm1, Expm1)
DS_UNARY(tanh, Tanh)
DS_UNARY(erf, Erf)
DS_UNARY(sigmoid, Sigmoid)
DS_UNARY(sin, Sin)
DS_UNARY(cos, Cos)
DS_UNARY(atan, Atan)
DS_UNARY(floor, Floor)
DS_UNARY(ceil, Ceil)
#undef DS_UNARY

} // namespace ds::import
