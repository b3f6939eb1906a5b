//===- elementwise_functions.h - exp, tanh and the like, in float32 arithmetic --===//
//
// Written once, as templates over what a number is. In compiler/codegen it is a value of LLVM's IR, and so an
// instruction of a kernel that a plan carries; in elementwise_compiled_math.h it is a float, so that the checker knows
// such a kernel's bits, and tests compare a function with the library's over millions of arguments. Additions,
// products, quotients and fused multiply-adds that round to nearest, integers of 32 and 64 bits, and selections: no
// approximate instruction, so results do not depend on the machine.
//
// Polynomials are those of scripts/fit_functions.py. Methods: Cody and Waite, Software Manual for the Elementary
// Functions (1980), for exp and log; Payne and Hanek, Radian Reduction for Trigonometric Functions (1983); Dekker, A
// Floating-Point Technique for Extending the Available Precision (1971), for the logarithm within pow.
//
// M has the types Float, Int (32 bits, wraps), Long (64 bits, wraps) and Bool, and the operations that are used below.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <limits>

namespace ds::kernels {

template <typename M> class FloatFunctions {
public:
  using Float = typename M::Float;
  using Int = typename M::Int;
  using Long = typename M::Long;
  using Bool = typename M::Bool;

  explicit FloatFunctions(M &model) : m_(model) {}

  /// e^x = 2^n e^r with n the integer next to x / ln 2.
  Float exp(Float x) {
    // What lies further out becomes 0 or infinite anyway; n stays small. A NaN passes.
    x = m_.select(x > f(100), f(100), x);
    x = m_.select(x < f(-110), f(-110), x);
    const float shift = 12582912.0f; // 1.5 * 2^23: the sum's last bit is worth 1
    const Float shifted = m_.fma(x, f(1.44269504f), f(shift));
    const Float n = shifted - f(shift);
    const Float r = m_.fma(n, f(1.90465432e-9f), m_.fma(n, f(-0.693147182f), x)); // ln 2 in two parts
    Float p = polynomial(r, {0.49999994f, 0.166665211f, 0.041668389f, 0.0083687352f, 0.00138145639f});
    p = m_.fma(m_.fma(p, r, f(1)), r, f(1));
    // In two steps, since 2^n alone may be too large or too small for a float where the result is not.
    const Int power = m_.bits(shifted) - i(0x4b400000);
    const Int half = m_.shiftRight(power, 1);
    return p * powerOfTwo(half) * powerOfTwo(power - half);
  }

  /// ln x = n ln 2 + ln m with m in [2/3, 4/3).
  Float log(Float x) {
    const auto [n, mantissa] = split(x, 0x3f2aaaab);
    const Float rest = mantissa - f(1);
    const Float p = polynomial(rest, {-0.5f, 0.333332092f, -0.249997169f, 0.200107619f, -0.166823268f, 0.140009075f,
                                      -0.121668555f, 0.14006111f, -0.129503623f});
    Float result = m_.fma(n, f(0.693147182f), m_.fma(p * rest, rest, rest));
    result = m_.select(x < f(infinity), result, x + x);
    result = m_.select(x < f(0), f(notANumber), result);
    return m_.select(x == f(0), f(-infinity), result);
  }

  /// ln(1 + x), by what the sum rounds off.
  Float log1p(Float x) {
    const Float sum = f(1) + x, lost = x - (sum - f(1));
    Float result = log(sum) + lost / sum;
    result = m_.select(sum == f(0), f(-infinity), result);
    return m_.select(x < f(infinity), result, x + x);
  }

  /// e^x - 1, by Kahan's (e^x - 1) x / ln e^x, in which the errors of e^x cancel.
  Float expm1(Float x) {
    const Float power = exp(x), rest = power - f(1);
    const Float result = m_.select(m_.abs(x) < f(17), rest * (x / log(power)), rest);
    return m_.select(power == f(1), x, result);
  }

  /// Odd in x: a polynomial near 0, 1 - 2 / (e^2x + 1) further out.
  Float tanh(Float x) {
    const Float size = m_.abs(x), square = x * x;
    const Float p = polynomial(
        square, {-0.333333313f, 0.133332312f, -0.0539501607f, 0.0217205174f, -0.00822938327f, 0.00219331053f});
    const Float near = m_.fma(p * square, size, size);
    const Float far = f(1) - f(2) / (exp(size + size) + f(1));
    return m_.withSignOf(m_.select(size < f(0.61f), near, far), x);
  }

  /// GELU's approximation by tanh (GeluTanh.h).
  Float geluTanh(Float x) { return f(0.5f) * x * (f(1) + tanh(geluInner(x))); }

  Float geluTanhSlope(Float x) {
    const Float t = tanh(geluInner(x));
    const Float slope = f(0.797884561f) * (f(1) + f(0.134145f) * x * x);
    return f(0.5f) * (f(1) + t) + f(0.5f) * x * (f(1) - t * t) * slope;
  }

  /// Odd in x: a polynomial near 0, 1 - e^q(x) further out, 1 where that rounds to it.
  Float erf(Float x) {
    const Float size = m_.abs(x);
    const Float p = polynomial(x * x, {0.128379166f, -0.376126319f, 0.112836875f, -0.0268589407f, 0.00519990688f,
                                       -0.000813001243f, 8.31677535e-05f});
    const Float near = m_.fma(p, size, size);
    const Float q = polynomial(m_.select(size > f(3.95f), f(3.95f), size),
                               {0.000163080898f, -1.12944865f, -0.633509636f, -0.108056039f, 0.0249303114f,
                                -0.0040709381f, 0.000402013335f, -1.52126313e-05f, -4.56471611e-07f});
    return m_.withSignOf(m_.select(size < f(0.925f), near, f(1) - exp(q)), x);
  }

  Float sigmoid(Float x) {
    const Float small = exp(-m_.abs(x)), rest = f(1) / (f(1) + small);
    return m_.select(x >= f(0), rest, m_.select(x < f(0), small * rest, x));
  }

  Float sin(Float x) {
    const auto [rest, quarter] = reduceAngle(x);
    const Float value = m_.select(isSet(quarter, 1), cosNearZero(rest), sinNearZero(rest));
    return m_.select(isSet(quarter, 2), -value, value);
  }

  Float cos(Float x) {
    const auto [rest, quarter] = reduceAngle(x);
    const Float value = m_.select(isSet(quarter, 1), sinNearZero(rest), cosNearZero(rest));
    return m_.select(isSet(quarter + i(1), 2), -value, value);
  }

  /// Odd in x: atan x = pi / 2 - atan 1/x beyond 1.
  Float atan(Float x) {
    const Float size = m_.abs(x);
    const Bool beyond = size > f(1);
    const Float t = m_.select(beyond, f(1) / size, size), square = t * t;
    const Float p = polynomial(square, {-0.333333284f, 0.19999671f, -0.142798319f, 0.110582188f, -0.0881107375f,
                                        0.0674155653f, -0.0446893685f, 0.0225393809f, -0.00731772697f, 0.00111374282f});
    const Float near = m_.fma(p * square, t, t);
    return m_.withSignOf(m_.select(beyond, (f(1.57079637f) - near) + f(-4.37113883e-8f), near), x);
  }

  /// x^y = e^(y ln |x|) with ln |x| as a sum of two floats, then what C's pow says of special operands.
  Float pow(Float x, Float y) {
    const Float size = m_.abs(x), exponent = m_.abs(y);
    const Float value = power(size, y);
    const Bool grows = m_.select(y < f(0), size<f(1), size> f(1));
    const Float limit = m_.select(grows, f(infinity), f(0));
    const Bool isLimit = m_.either(m_.either(size == f(0), size == f(infinity)), exponent == f(infinity));
    Float result = m_.select(isLimit, m_.select(size == f(1), f(1), limit), value);
    const Float halved = y * f(0.5f);
    const Bool whole = m_.floor(y) == y, odd = m_.both(whole, m_.floor(halved) != halved);
    const Bool hasNoRoot =
        m_.both(m_.both(x < f(0), size < f(infinity)), m_.both(m_.negate(whole), exponent < f(infinity)));
    result = m_.select(hasNoRoot, f(notANumber), result);
    result = m_.select(m_.both(m_.isNegative(m_.bits(x)), m_.both(odd, exponent < f(infinity))), -result, result);
    result = m_.select(m_.either(x != x, y != y), x + y, result);
    return m_.select(m_.either(x == f(1), y == f(0)), f(1), result);
  }

private:
  static constexpr float infinity = std::numeric_limits<float>::infinity();
  static constexpr float notANumber = std::numeric_limits<float>::quiet_NaN();

  struct Split {
    Float exponent, mantissa;
  };
  struct Angle {
    Float rest;  ///< in [-pi / 4, pi / 4]
    Int quarter; ///< how many quarter turns were taken off
  };

  Float geluInner(Float x) { return f(0.797884561f) * (x + f(0.044715f) * x * x * x); }

  M &m_;

  Float f(float value) { return m_.number(value); }
  Int i(uint32_t value) { return m_.integer(value); }

  /// Horner's scheme; the coefficient of 1 comes first.
  Float polynomial(Float x, std::initializer_list<float> coefficients) {
    auto next = std::rbegin(coefficients);
    Float sum = f(*next++);
    for (; next != std::rend(coefficients); ++next)
      sum = m_.fma(sum, x, f(*next));
    return sum;
  }

  Float powerOfTwo(Int n) { return m_.fromBits((n + i(127)) << 23); }
  Bool isSet(Int bits, uint32_t mask) { return (bits & i(mask)) != i(0); }

  /// x = 2^exponent * mantissa, for positive x; `lowest` are the bits of the least mantissa.
  Split split(Float x, uint32_t lowest) {
    const Bool isDenormal = x < f(1.17549435e-38f);
    const Int bits = m_.bits(m_.select(isDenormal, x * f(8388608.0f), x));
    const Int exponent = (bits - i(lowest)) & i(0xff800000);
    const Float scaled = m_.select(isDenormal, f(-23), f(0));
    return {m_.fma(m_.toFloat(exponent), f(1.1920929e-7f), scaled), m_.fromBits(bits - exponent)};
  }

  Float sinNearZero(Float x) {
    const Float square = x * x;
    const Float p = polynomial(square, {-0.166666672f, 0.00833332911f, -0.0001983931f, 2.71810131e-06f});
    return m_.withSignOf(m_.fma(p * square, x, x), x);
  }

  Float cosNearZero(Float x) {
    const Float square = x * x;
    const Float p = polynomial(square, {0.0416666456f, -0.00138873141f, 2.44329749e-05f});
    return m_.fma(p * square, square, m_.fma(square, f(-0.5f), f(1)));
  }

  /// x = quarter * pi / 2 + rest, for any finite x: x times those 96 bits of 2 / pi that matter for its exponent, the
  /// bits above being whole turns, those below too small. A turn's quarters are then the product's two highest bits.
  Angle reduceAngle(Float x) {
    const Int bits = m_.bits(m_.abs(x));
    const Long mantissa = m_.widen((bits & i(0x007fffff)) | i(0x00800000));
    const Int exponent = m_.shiftRight(bits, 23) - i(126); // at least 0 beyond pi / 4
    const Long first = bitsOfTwoOverPi(exponent, 0), second = bitsOfTwoOverPi(exponent, 1),
               third = bitsOfTwoOverPi(exponent, 2);
    const Long turns = ((mantissa * first) << 32) + mantissa * second + m_.shiftRight(mantissa * third, 32);
    const Long quarters = m_.shiftRight(turns + m_.longInteger(uint64_t(1) << 61), 62);
    const Float part = m_.toFloat(turns - (quarters << 62));
    const Float rest = m_.fma(part, f(3.40612167e-19f), part * f(-9.4784e-27f)); // times pi / 2 * 2^-62, in two parts
    const Bool isReduced = m_.abs(x) < f(0.785398185f);
    const Int quarter = m_.narrow(quarters);
    const Bool below = x < f(0);
    const Float signedRest = m_.select(below, -rest, rest);
    const Float finite = m_.select(isReduced, x, signedRest);
    return {m_.select(m_.abs(x) < f(infinity), finite, f(notANumber)),
            m_.select(isReduced, i(0), m_.select(below, i(0) - quarter, quarter))};
  }

  /// 32 bits of 2 / pi, from bit 32 * word + exponent of a string on that begins with 26 zeros.
  Long bitsOfTwoOverPi(Int exponent, unsigned word) {
    static constexpr uint32_t words[] = {0x00000028, 0xbe60db93, 0x91054a7f, 0x09d5f47d,
                                         0x4d377036, 0xd8a5664f, 0x10e4107f, 0x9458eaf7};
    const Int at = m_.shiftRight(exponent, 5);
    const auto chosen = [&](unsigned offset) {
      Int result = i(words[word + offset]);
      for (unsigned k = 1; k <= 4; ++k)
        if (word + offset + k < std::size(words))
          result = m_.select(at == i(k), i(words[word + offset + k]), result);
      return m_.widen(result);
    };
    const Long both = (chosen(0) << 32) | chosen(1);
    return m_.shiftRight(both << m_.widen(exponent & i(31)), 32);
  }

  /// x^y for finite x > 0 and finite y. ln x = n ln 2 + 2 atanh(q), q = (mantissa - 1) / (mantissa + 1).
  Float power(Float x, Float y) {
    const auto [n, mantissa] = split(x, 0x3f3504f3);
    const Float above = mantissa - f(1), below = mantissa + f(1);
    const Float belowRest = mantissa - (below - f(1)), inverse = f(1) / below;
    const Float q = above * inverse;
    const Float qRest = m_.fma(-q, belowRest, m_.fma(-q, below, above)) * inverse;
    const Float square = q * q, twice = q + q;
    const Float p = polynomial(square, {0.333333313f, 0.200001702f, 0.142684594f, 0.117950119f});
    const Float low = m_.fma(twice, square * p, qRest + qRest);
    // n times the upper bits of ln 2 is exact, and at least as large as what is added.
    const Float whole = n * f(0.693145752f), sum = whole + twice;
    const Float sumRest = ((whole - sum) + twice) + m_.fma(n, f(1.42860677e-6f), low);
    const Float log = sum + sumRest, logRest = (sum - log) + sumRest;
    const Float product = y * log;
    const Float productRest = m_.fma(y, logRest, m_.fma(y, log, -product));
    const Float result = exp(product);
    const Bool isMiddling = m_.both(m_.abs(product) < f(200), result < f(infinity));
    return m_.select(isMiddling, m_.fma(result, productRest, result), result);
  }
};

} // namespace ds::kernels
