//===- Floats.cpp - arithmetic of floats -----------------------------------===//
//
// ISA 9.7.3 (float32 and float64), 9.7.4 (16 bits). What ".ftz", ".sat" and ".relu" do is an instruction of its own
// in front or behind.
//
//===----------------------------------------------------------------------===//
#include "kernels/ptx/Decoder.h"
#include "kernels/ptx/Functions.h"
#include "kernels/ptx/Sentence.h"

#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <string_view>

namespace ds::ptx {

namespace {

/// What is computed with: 16 bits in double, where sums, products and quotients of two, rounded twice, are those
/// rounded once.
double computable(Half value) { return widened(value); }
double computable(Brain value) { return widened(value); }
float computable(float value) { return value; }
double computable(double value) { return value; }

struct Add {
  template <typename T> static T of(T a, T b) { return rounded<T>(computable(a) + computable(b)); }
};
struct Sub {
  template <typename T> static T of(T a, T b) { return rounded<T>(computable(a) - computable(b)); }
};
struct Mul {
  template <typename T> static T of(T a, T b) { return rounded<T>(computable(a) * computable(b)); }
};
struct Div {
  template <typename T> static T of(T a, T b) { return rounded<T>(computable(a) / computable(b)); }
};
struct Sqrt {
  template <typename T> static T of(T a) { return rounded<T>(std::sqrt(computable(a))); }
};
struct Reciprocal {
  template <typename T> static T of(T a) { return rounded<T>(T(1) / a); }
};

/// a * b + c of narrow numbers as a double whose last bit is odd if it is not exact, so that a second rounding to 16
/// bits is as one. Boldo and Melquiond, "Emulation of a FMA and correctly rounded sums", 2008.
double fusedToOdd(double a, double b, double c) {
  const double product = a * b; // exact: 22 bits
  const double sum = product + c;
  if (!std::isfinite(sum))
    return sum;
  const double part = sum - product;
  const double error = (product - (sum - part)) + (c - part);
  const auto bits = std::bit_cast<uint64_t>(sum);
  if (error == 0 || (bits & 1) != 0)
    return sum;
  return std::bit_cast<double>((error > 0) == (sum > 0) ? bits + 1 : bits - 1);
}
struct Fma {
  template <typename T> static T of(T a, T b, T c) {
    if constexpr (isNarrow<T>)
      return rounded<T>(fusedToOdd(widened(a), widened(b), widened(c)));
    else
      return number(std::fma(a, b, c));
  }
};

template <typename T> constexpr uint64_t signBit = uint64_t(1) << (8 * sizeof(T) - 1);
struct Neg {
  template <typename T> static uint64_t of(T a) { return bitsOf(a) ^ signBit<T>; }
};
struct Abs {
  template <typename T> static uint64_t of(T a) { return bitsOf(a) & ~signBit<T>; }
};
/// a's sign, b's magnitude.
struct CopySign {
  template <typename T> static uint64_t of(T a, T b) { return (bitsOf(b) & ~signBit<T>) | (bitsOf(a) & signBit<T>); }
};

template <typename T> T notANumber() {
  if constexpr (isNarrow<T>)
    return T{0x7FFF};
  else
    return number(std::numeric_limits<T>::quiet_NaN());
}

/// ISA 9.7.3.11 and 9.7.3.12.
template <bool least, bool keepsNan> struct Extreme {
  template <typename T> static T of(T first, T second) {
    const auto a = computable(first), b = computable(second);
    if (std::isnan(a) || std::isnan(b))
      return keepsNan || (std::isnan(a) && std::isnan(b)) ? notANumber<T>() : std::isnan(a) ? second : first;
    const bool takesFirst = a != b ? (a < b) == least : std::signbit(a) == least;
    return takesFirst ? first : second;
  }
};

// In double, then rounded. The ISA bounds a GPU's errors.
template <double (*function)(double)> uint64_t approximated(uint64_t a, uint64_t, uint64_t) {
  return bitsOf(rounded<float>(function(as<float>(a))));
}
double exp2Of(double x) { return std::exp2(x); }
double log2Of(double x) { return std::log2(x); }
double sinOf(double x) { return std::sin(x); }
double cosOf(double x) { return std::cos(x); }
double tanhOf(double x) { return std::tanh(x); }
double sqrtOf(double x) { return std::sqrt(x); }
double rsqrtOf(double x) { return 1 / std::sqrt(x); }
double reciprocalOf(double x) { return 1 / x; }
uint64_t rsqrtOfDouble(uint64_t a, uint64_t, uint64_t) { return bitsOf(rsqrtOf(as<double>(a))); }
/// ISA 9.7.3.8: a divisor between 2^126 and 2^128 has a reciprocal that is flushed to zero.
uint64_t approximateQuotient(uint64_t a, uint64_t b, uint64_t) {
  const float x = as<float>(a), y = as<float>(b), magnitude = std::fabs(y);
  if (magnitude > 0x1p126f && std::isfinite(y))
    return bitsOf(number(x * std::copysign(0.0f, y)));
  return bitsOf(rounded<float>(double(x) / double(y)));
}
uint64_t fullQuotient(uint64_t a, uint64_t b, uint64_t) {
  return bitsOf(rounded<float>(double(as<float>(a)) / double(as<float>(b))));
}

// ".ftz", ".sat" and ".relu".
struct Saturated {
  template <typename T> static T of(T value) {
    const auto x = computable(value);
    return x > 1 ? rounded<T>(1) : x > 0 ? value : rounded<T>(0); // so does what is no number
  }
};
struct Rectified {
  template <typename T> static T of(T value) {
    const auto x = computable(value);
    return std::isnan(x) ? notANumber<T>() : x > 0 ? value : rounded<T>(0);
  }
};

Function checked(const Decoder &decoder, Function function) {
  if (function == nullptr)
    decoder.refuse("the instruction is not emulated for this type");
  return function;
}

/// d = function(a, ...) with what the modifiers say before and after.
void apply(Decoder &decoder, Function function, Type type, size_t sources) {
  const bool isSingle = type.kind == Type::Kind::Float && type.width == 32;
  const bool flushes = isSingle && decoder.take("ftz");
  const bool saturates = isSingle && decoder.take("sat");
  const bool rectifies = type.width == 16 && decoder.take("relu");
  decoder.expectOperands(sources + 1);
  (void)checked(decoder, function);
  std::array<Slot, 3> from{zero, zero, zero};
  for (size_t source = 0; source < sources; ++source) {
    from[source] = decoder.source(source + 1, type);
    if (flushes) {
      const Slot result = decoder.temporary();
      decoder.compute(flushed, result, from[source]);
      from[source] = result;
    }
  }
  Slot to = decoder.destination(0, type);
  Function last = function;
  for (const auto &[isThere, after] : {std::pair{flushes, Function(flushed)},
                                       {saturates, ofFloats<Saturated>(type)},
                                       {rectifies, ofFloats<Rectified>(type)}})
    if (isThere) {
      const Slot between = decoder.temporary();
      decoder.compute(last, between, from[0], from[1], from[2]);
      from = {between, zero, zero};
      last = after;
    }
  decoder.compute(last, to, from[0], from[1], from[2]);
}

/// Only ".rn" is emulated; without a rounding ptxas may fuse. ISA 9.7.3.1: "an add instruction with no rounding
/// modifier defaults to round-to-nearest-even and may be optimized aggressively by the code optimizer".
void expectNearest(Decoder &decoder, bool mayFuse) {
  if (decoder.take("rn"))
    return;
  const auto &whole = decoder.statement.whole;
  if (const auto other = decoder.takeOneOf({"rz", "rm", "rp"}); !other.empty())
    decoder.refuse(sentence("of roundings only .rn is emulated, not .{}", other));
  const auto opcode = decoder.statement.opcode;
  if (mayFuse)
    decoder.refuse(sentence("{} has no rounding, so ptxas may fuse it and its bits depend on ptxas; write {}.rn{}",
                            whole, opcode, whole.substr(opcode.size())));
  decoder.refuse(sentence("{} has no rounding; write {}.rn{}", whole, opcode, whole.substr(opcode.size())));
}

template <typename Operation> void sum(Decoder &decoder, Type type) {
  expectNearest(decoder, true);
  apply(decoder, ofFloats<Operation>(type), type, 2);
}

/// fma and mad, which are one since sm_20.
void fused(Decoder &decoder, Type type) {
  expectNearest(decoder, false);
  apply(decoder, ofFloats<Fma>(type), type, 3);
}

template <bool least> void extreme(Decoder &decoder, Type type) {
  const bool keepsNan = decoder.take("NaN");
  apply(decoder, keepsNan ? ofFloats<Extreme<least, true>>(type) : ofFloats<Extreme<least, false>>(type), type, 2);
}

bool isSingle(Type type) { return type.kind == Type::Kind::Float && type.width == 32; }

/// An instruction that is ".approx" or not there.
void approximate(Decoder &decoder, Type type, Function function, size_t sources) {
  decoder.approximates();
  if (!isSingle(type) || !decoder.take("approx"))
    decoder.refuse("the instruction is emulated as .approx of f32");
  apply(decoder, function, type, sources);
}

void quotient(Decoder &decoder, Type type) {
  const auto way = isSingle(type) ? decoder.takeOneOf({"approx", "full"}) : "";
  if (!way.empty()) {
    decoder.approximates();
    return apply(decoder, way == "full" ? fullQuotient : approximateQuotient, type, 2);
  }
  expectNearest(decoder, false);
  apply(decoder, ofWideFloats<Div>(type), type, 2);
}

template <typename Operation> void root(Decoder &decoder, Type type, Function approximation) {
  if (isSingle(type) && decoder.take("approx")) {
    decoder.approximates();
    return apply(decoder, approximation, type, 1);
  }
  expectNearest(decoder, false);
  apply(decoder, ofWideFloats<Operation>(type), type, 1);
}

void reciprocalRoot(Decoder &decoder, Type type) {
  if (type.width != 64)
    return approximate(decoder, type, approximated<rsqrtOf>, 1);
  decoder.approximates();
  if (!decoder.take("approx"))
    decoder.refuse("the instruction is emulated as .approx");
  apply(decoder, rsqrtOfDouble, type, 1);
}

struct Row {
  std::string_view opcode;
  void (*decode)(Decoder &decoder, Type type);
};
constexpr Row rows[] = {
    {"add", sum<Add>},
    {"sub", sum<Sub>},
    {"mul", sum<Mul>},
    {"fma", fused},
    {"mad", fused},
    {"div", quotient},
    {"neg", [](Decoder &d, Type t) { apply(d, ofFloats<Neg>(t), t, 1); }},
    {"abs", [](Decoder &d, Type t) { apply(d, ofFloats<Abs>(t), t, 1); }},
    {"min", extreme<true>},
    {"max", extreme<false>},
    {"copysign", [](Decoder &d, Type t) { apply(d, ofWideFloats<CopySign>(t), t, 2); }},
    {"sqrt", [](Decoder &d, Type t) { root<Sqrt>(d, t, approximated<sqrtOf>); }},
    {"rcp", [](Decoder &d, Type t) { root<Reciprocal>(d, t, approximated<reciprocalOf>); }},
    {"rsqrt", reciprocalRoot},
    {"ex2", [](Decoder &d, Type t) { approximate(d, t, approximated<exp2Of>, 1); }},
    {"lg2", [](Decoder &d, Type t) { approximate(d, t, approximated<log2Of>, 1); }},
    {"sin", [](Decoder &d, Type t) { approximate(d, t, approximated<sinOf>, 1); }},
    {"cos", [](Decoder &d, Type t) { approximate(d, t, approximated<cosOf>, 1); }},
    {"tanh", [](Decoder &d, Type t) { approximate(d, t, approximated<tanhOf>, 1); }},
};

} // namespace

bool decodeFloat(Decoder &decoder) {
  for (const Row &row : rows)
    if (row.opcode == decoder.statement.opcode) {
      row.decode(decoder, decoder.takeType());
      return true;
    }
  return false;
}

} // namespace ds::ptx
