//===- FoldElementwise.cpp - computing with constants, element by element ----===//
#include "compiler/import/Fold.h"
#include "compiler/import/NarrowFloat.h"
#include "compiler/import/files/Failure.h"

#include "llvm/ADT/bit.h"

#include <cmath>
#include <limits>
#include <type_traits>

namespace ds::import {
namespace {

/// `shape` with 1 where no operand moves: what must be computed.
template <size_t N> Shape movingShape(const Shape &shape, const std::array<Shape, N> &strides) {
  Shape result = shape;
  for (size_t i = 0; i < shape.size(); ++i) {
    bool moves = shape[i] == 0;
    for (const Shape &each : strides)
      moves |= each[i] != 0;
    if (!moves)
      result[i] = 1;
  }
  return result;
}

/// Applies `body(offsets) -> R` to what moves and expands the result to `shape`.
template <typename R, size_t N, typename Body>
Constant compute(DType dtype, const Shape &shape, const std::array<Shape, N> &strides,
                 const std::array<int64_t, N> &offsets, FoldBudget &budget, Body body) {
  const Shape moving = movingShape<N>(shape, strides);
  const int64_t count = elementCount(moving);
  budget.charge(count);
  std::vector<char> bytes(size_t(count) * sizeof(R));
  R *next = reinterpret_cast<R *>(bytes.data());
  forEachElement<N>(moving, strides, offsets, [&](const std::array<int64_t, N> &at) { *next++ = body(at); });
  return Constant::dense(dtype, moving, std::move(bytes)).broadcast(shape);
}

template <typename R, typename T, typename F>
Constant zip(DType dtype, const Constant &lhs, const Constant &rhs, const Shape &shape, FoldBudget &budget, F f) {
  const Constant a = lhs.broadcast(shape), b = rhs.broadcast(shape);
  const T *x = a.data<T>(), *y = b.data<T>();
  return compute<R, 2>(dtype, shape, {a.strides(), b.strides()}, {a.offset(), b.offset()}, budget,
                       [=](const std::array<int64_t, 2> &at) { return R(f(x[at[0]], y[at[1]])); });
}

template <typename T> bool isMinusOne(T value) { return std::is_signed_v<T> && value == T(-1); }

template <typename T> T divide(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    return a / b;
  } else {
    if (b == 0)
      throw Failure("an integer is divided by zero");
    return isMinusOne(b) ? T(Wrapping<T>(0) - Wrapping<T>(a)) : T(a / b);
  }
}

/// The remainder with the divisor's sign, as Python's % and ONNX's Mod on integers.
template <typename T> T modulo(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    return std::fmod(a, b);
  } else {
    if (b == 0)
      throw Failure("an integer is divided by zero");
    if (isMinusOne(b))
      return 0;
    const T rest = T(a % b);
    return rest != 0 && (rest < 0) != (b < 0) ? T(rest + b) : rest;
  }
}

template <typename T> T power(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    return std::pow(a, b);
  } else {
    if (b < 0)
      return a == 1 ? T(1) : isMinusOne(a) ? (b % 2 ? T(-1) : T(1)) : T(0);
    Wrapping<T> result = 1, base = Wrapping<T>(a);
    for (auto e = Wrapping<T>(b); e; e >>= 1, base *= base)
      if (e & 1)
        result *= base;
    return T(result);
  }
}

template <typename T>
std::optional<Constant> arithmetic(BinaryFold kind, DType dtype, const Constant &lhs, const Constant &rhs,
                                   const Shape &shape, FoldBudget &budget) {
  using W = Wrapping<T>;
  auto run = [&](auto f) { return zip<T, T>(dtype, lhs, rhs, shape, budget, f); };
  switch (kind) {
  case BinaryFold::Add:
    return run([](T a, T b) { return T(W(a) + W(b)); });
  case BinaryFold::Sub:
    return run([](T a, T b) { return T(W(a) - W(b)); });
  case BinaryFold::Mul:
    return run([](T a, T b) { return T(W(a) * W(b)); });
  case BinaryFold::Div:
    return run(divide<T>);
  case BinaryFold::Mod:
    return run(modulo<T>);
  case BinaryFold::Pow:
    return run(power<T>);
  case BinaryFold::Max:
    return run([](T a, T b) { return a > b || a != a ? a : b; });
  case BinaryFold::Min:
    return run([](T a, T b) { return a < b || a != a ? a : b; });
  default:
    return std::nullopt;
  }
}

template <typename T>
std::optional<Constant> comparison(BinaryFold kind, const Constant &lhs, const Constant &rhs, const Shape &shape,
                                   FoldBudget &budget) {
  auto run = [&](auto f) { return zip<uint8_t, T>(DType::Bool, lhs, rhs, shape, budget, f); };
  switch (kind) {
  case BinaryFold::Equal:
    return run([](T a, T b) { return a == b; });
  case BinaryFold::Less:
    return run([](T a, T b) { return a < b; });
  case BinaryFold::LessEqual:
    return run([](T a, T b) { return a <= b; });
  case BinaryFold::Greater:
    return run([](T a, T b) { return a > b; });
  case BinaryFold::GreaterEqual:
    return run([](T a, T b) { return a >= b; });
  default:
    return std::nullopt;
  }
}

std::optional<Constant> logic(BinaryFold kind, const Constant &lhs, const Constant &rhs, const Shape &shape,
                              FoldBudget &budget) {
  auto run = [&](auto f) { return zip<uint8_t, uint8_t>(DType::Bool, lhs, rhs, shape, budget, f); };
  switch (kind) {
  case BinaryFold::And:
    return run([](uint8_t a, uint8_t b) { return a && b; });
  case BinaryFold::Or:
    return run([](uint8_t a, uint8_t b) { return a || b; });
  case BinaryFold::Xor:
    return run([](uint8_t a, uint8_t b) { return !a != !b; });
  default:
    return comparison<uint8_t>(kind, lhs, rhs, shape, budget);
  }
}

template <typename R, typename T, typename F>
Constant map(DType dtype, const Constant &input, FoldBudget &budget, F f) {
  const T *x = input.data<T>();
  return compute<R, 1>(dtype, input.shape(), {input.strides()}, {input.offset()}, budget,
                       [=](const std::array<int64_t, 1> &at) { return R(f(x[at[0]])); });
}

template <typename T> std::optional<Constant> floatFunction(UnaryFold kind, const Constant &input, FoldBudget &budget) {
  auto run = [&](auto f) { return map<T, T>(input.dtype(), input, budget, f); };
  switch (kind) {
  case UnaryFold::Sqrt:
    return run([](T x) { return std::sqrt(x); });
  case UnaryFold::Reciprocal:
    return run([](T x) { return T(1) / x; });
  case UnaryFold::Exp:
    return run([](T x) { return std::exp(x); });
  case UnaryFold::Log:
    return run([](T x) { return std::log(x); });
  case UnaryFold::Log1p:
    return run([](T x) { return std::log1p(x); });
  case UnaryFold::Expm1:
    return run([](T x) { return std::expm1(x); });
  case UnaryFold::Erf:
    return run([](T x) { return std::erf(x); });
  case UnaryFold::Tanh:
    return run([](T x) { return std::tanh(x); });
  case UnaryFold::Sigmoid:
    return run([](T x) { return T(1) / (T(1) + std::exp(-x)); });
  case UnaryFold::Sin:
    return run([](T x) { return std::sin(x); });
  case UnaryFold::Cos:
    return run([](T x) { return std::cos(x); });
  case UnaryFold::Floor:
    return run([](T x) { return std::floor(x); });
  case UnaryFold::Ceil:
    return run([](T x) { return std::ceil(x); });
  case UnaryFold::Round:
    return run([](T x) { return std::nearbyint(x); });
  case UnaryFold::Atan:
    return run([](T x) { return std::atan(x); });
  case UnaryFold::IsNan:
    return map<uint8_t, T>(DType::Bool, input, budget, [](T x) { return x != x; });
  default:
    return std::nullopt;
  }
}

template <typename T>
std::optional<Constant> numberFunction(UnaryFold kind, const Constant &input, FoldBudget &budget) {
  using W = Wrapping<T>;
  auto run = [&](auto f) { return map<T, T>(input.dtype(), input, budget, f); };
  auto negate = [](T x) {
    if constexpr (std::is_floating_point_v<T>)
      return -x;
    else
      return T(W(0) - W(x));
  };
  switch (kind) {
  case UnaryFold::Neg:
    return run(negate);
  case UnaryFold::Abs:
    return run([=](T x) { return x < 0 ? negate(x) : x; });
  case UnaryFold::Sign:
    return run([](T x) { return x != x ? x : T((x > 0) - (x < 0)); });
  case UnaryFold::Relu:
    return run([](T x) { return x < 0 ? T(0) : x; });
  default:
    if constexpr (std::is_floating_point_v<T>)
      return floatFunction<T>(kind, input, budget);
    return std::nullopt;
  }
}

template <typename To, typename From> To convert(From x) {
  if constexpr (std::is_integral_v<To> && std::is_floating_point_v<From>) {
    if (x != x)
      return 0;
    if (x >= From(std::numeric_limits<To>::max()))
      return std::numeric_limits<To>::max();
    if (x <= From(std::numeric_limits<To>::min()))
      return std::numeric_limits<To>::min();
  }
  return To(x);
}

template <typename From> Constant castFrom(const Constant &input, DType to, FoldBudget &budget) {
  switch (to) {
  case DType::F16:
  case DType::BF16:
    return map<uint16_t, From>(to, input, budget, [to](From x) {
      return uint16_t(convertBits(llvm::bit_cast<uint64_t>(double(x)), DType::F64, to)); // one rounding of a float
    });
  case DType::F32:
    return map<float, From>(to, input, budget, convert<float, From>);
  case DType::F64:
    return map<double, From>(to, input, budget, convert<double, From>);
  case DType::I32:
    return map<int32_t, From>(to, input, budget, convert<int32_t, From>);
  case DType::I64:
    return map<int64_t, From>(to, input, budget, convert<int64_t, From>);
  case DType::U8:
    return map<uint8_t, From>(to, input, budget, convert<uint8_t, From>);
  case DType::U16:
    return map<uint16_t, From>(to, input, budget, convert<uint16_t, From>);
  case DType::U32:
    return map<uint32_t, From>(to, input, budget, convert<uint32_t, From>);
  default:
    return map<uint8_t, From>(DType::Bool, input, budget, [](From x) { return x != 0; });
  }
}

template <typename T>
Constant select(const Constant &condition, const Constant &onTrue, const Constant &onFalse, const Shape &shape,
                FoldBudget &budget) {
  const Constant c = condition.broadcast(shape), a = onTrue.broadcast(shape), b = onFalse.broadcast(shape);
  const auto *which = c.data<uint8_t>();
  const T *x = a.data<T>(), *y = b.data<T>();
  return compute<T, 3>(onTrue.dtype(), shape, {c.strides(), a.strides(), b.strides()},
                       {c.offset(), a.offset(), b.offset()}, budget,
                       [=](const std::array<int64_t, 3> &at) { return which[at[0]] ? x[at[1]] : y[at[2]]; });
}

} // namespace

std::optional<Constant> foldBinary(BinaryFold kind, const Constant &lhs, const Constant &rhs, const Shape &shape,
                                   FoldBudget &budget) {
  auto run = [&]<typename T>(T) {
    auto result = arithmetic<T>(kind, lhs.dtype(), lhs, rhs, shape, budget);
    return result ? result : comparison<T>(kind, lhs, rhs, shape, budget);
  };
  switch (lhs.dtype()) {
  case DType::F32:
    return run(float());
  case DType::F64:
    return run(double());
  case DType::I32:
    return run(int32_t());
  case DType::I64:
    return run(int64_t());
  case DType::U8:
    return run(uint8_t());
  case DType::U16:
    return run(uint16_t());
  case DType::U32:
    return run(uint32_t());
  case DType::Bool:
    return logic(kind, lhs, rhs, shape, budget);
  default: // floats of 16 bits are computed as float32
    return std::nullopt;
  }
}

std::optional<Constant> foldUnary(UnaryFold kind, const Constant &input, FoldBudget &budget) {
  switch (input.dtype()) {
  case DType::F32:
    return numberFunction<float>(kind, input, budget);
  case DType::F64:
    return numberFunction<double>(kind, input, budget);
  case DType::I32:
    return numberFunction<int32_t>(kind, input, budget);
  case DType::I64:
    return numberFunction<int64_t>(kind, input, budget);
  case DType::U8:
    return numberFunction<uint8_t>(kind, input, budget);
  case DType::U16:
    return numberFunction<uint16_t>(kind, input, budget);
  case DType::U32:
    return numberFunction<uint32_t>(kind, input, budget);
  default:
    if (kind != UnaryFold::Not || input.dtype() != DType::Bool)
      return std::nullopt;
    return map<uint8_t, uint8_t>(DType::Bool, input, budget, [](uint8_t x) { return !x; });
  }
}

Constant foldSelect(const Constant &condition, const Constant &onTrue, const Constant &onFalse, const Shape &shape,
                    FoldBudget &budget) {
  switch (byteSize(onTrue.dtype())) {
  case 1:
    return select<uint8_t>(condition, onTrue, onFalse, shape, budget);
  case 2:
    return select<uint16_t>(condition, onTrue, onFalse, shape, budget);
  case 4:
    return select<uint32_t>(condition, onTrue, onFalse, shape, budget);
  default:
    return select<uint64_t>(condition, onTrue, onFalse, shape, budget);
  }
}

Constant foldCast(const Constant &input, DType to, FoldBudget &budget) {
  if (input.dtype() == to)
    return input;
  switch (input.dtype()) {
  case DType::F16:
  case DType::BF16:
    return foldCast(map<float, uint16_t>(DType::F32, input, budget,
                                         [from = input.dtype()](uint16_t bits) {
                                           return llvm::bit_cast<float>(uint32_t(convertBits(bits, from, DType::F32)));
                                         }),
                    to, budget);
  case DType::F32:
    return castFrom<float>(input, to, budget);
  case DType::F64:
    return castFrom<double>(input, to, budget);
  case DType::I32:
    return castFrom<int32_t>(input, to, budget);
  case DType::I64:
    return castFrom<int64_t>(input, to, budget);
  case DType::U16:
    return castFrom<uint16_t>(input, to, budget);
  case DType::U32:
    return castFrom<uint32_t>(input, to, budget);
  default:
    return castFrom<uint8_t>(input, to, budget);
  }
}

} // namespace ds::import
