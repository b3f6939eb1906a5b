// Included by ForEachIsa.h into a namespace per instruction set; not a header of its own.
//
// One loop per opcode and type over a tile: result[i] = op(a[i], b[i], c[i]). A result may be the memory of an operand.

/// Integers wrap: computed as unsigned.
template <typename T> DS_INLINE auto wrapping(T x) {
  if constexpr (std::is_floating_point_v<T>)
    return x;
  else
    return std::make_unsigned_t<T>(x);
}

struct Add {
  template <typename T> static DS_INLINE T apply(T a, T b) { return T(wrapping(a) + wrapping(b)); }
};
struct Sub {
  template <typename T> static DS_INLINE T apply(T a, T b) { return T(wrapping(a) - wrapping(b)); }
};
struct Mul {
  template <typename T> static DS_INLINE T apply(T a, T b) {
    if constexpr (std::is_floating_point_v<T>)
      return a * b;
    else
      return T(uint64_t(a) * uint64_t(b)); // 64 bits: 16-bit operands would be promoted to int, which may overflow
  }
};
struct Div { // an integer divisor is never 0 here: the kernel looks first
  template <typename T> static DS_INLINE T apply(T a, T b) {
    if constexpr (std::is_floating_point_v<T>)
      return a / b;
    else if constexpr (std::is_signed_v<T>)
      return b == T(-1) ? T(0 - wrapping(a)) : T(a / b);
    else
      return T(a / b);
  }
};
struct Max {
  template <typename T> static DS_INLINE T apply(T a, T b) { return a > b || a != a ? a : b; }
};
struct Min {
  template <typename T> static DS_INLINE T apply(T a, T b) { return a < b || a != a ? a : b; }
};
struct And {
  template <typename T> static DS_INLINE T apply(T a, T b) { return T(a & b); }
};
struct Or {
  template <typename T> static DS_INLINE T apply(T a, T b) { return T(a | b); }
};
struct Xor {
  template <typename T> static DS_INLINE T apply(T a, T b) { return T(a ^ b); }
};
struct Equal {
  template <typename T> static DS_INLINE uint8_t apply(T a, T b) { return a == b; }
};
struct Less {
  template <typename T> static DS_INLINE uint8_t apply(T a, T b) { return a < b; }
};
struct LessEqual {
  template <typename T> static DS_INLINE uint8_t apply(T a, T b) { return a <= b; }
};
struct Greater {
  template <typename T> static DS_INLINE uint8_t apply(T a, T b) { return a > b; }
};
struct GreaterEqual {
  template <typename T> static DS_INLINE uint8_t apply(T a, T b) { return a >= b; }
};
struct Neg {
  template <typename T> static DS_INLINE T apply(T a) {
    if constexpr (std::is_floating_point_v<T>)
      return -a;
    else
      return T(0 - wrapping(a));
  }
};
struct Abs {
  template <typename T> static DS_INLINE T apply(T a) {
    if constexpr (std::is_floating_point_v<T>)
      return std::fabs(a);
    else
      return a < T(0) ? T(0 - wrapping(a)) : a;
  }
};
struct Relu {
  template <typename T> static DS_INLINE T apply(T a) { return a < T(0) ? T(0) : a; } // NaN stays
};
struct Sign {
  template <typename T> static DS_INLINE T apply(T a) {
    return T(T(a > T(0)) - T(a < T(0)));
  } // of NaN 0, as torch.sign
};
struct Copy {
  template <typename T> static DS_INLINE T apply(T a) { return a; }
};
struct Not {
  static DS_INLINE uint8_t apply(uint8_t a) { return a == 0; }
};
struct IsNan {
  template <typename T> static DS_INLINE uint8_t apply(T a) { return a != a; }
};
struct Sqrt {
  template <typename T> static DS_INLINE T apply(T a) { return std::sqrt(a); }
};
struct Rsqrt {
  template <typename T> static DS_INLINE T apply(T a) { return T(1) / std::sqrt(a); }
};
struct Reciprocal {
  template <typename T> static DS_INLINE T apply(T a) { return T(1) / a; }
};
struct Floor {
  template <typename T> static DS_INLINE T apply(T a) { return std::floor(a); }
};
struct Ceil {
  template <typename T> static DS_INLINE T apply(T a) { return std::ceil(a); }
};
struct Round {
  template <typename T> static DS_INLINE T apply(T a) { return std::nearbyint(a); }
};
struct Atan {
  template <typename T> static DS_INLINE T apply(T a) { return std::atan(a); }
};
struct Exp {
  template <typename T> static DS_INLINE T apply(T a) { return vectorExp(a); }
};
struct Log {
  static DS_INLINE float apply(float a) { return vectorLog(a); }
  static DS_INLINE double apply(double a) { return std::log(a); }
};
struct Log1p {
  static DS_INLINE float apply(float a) { return vectorLog1p(a); }
  static DS_INLINE double apply(double a) { return std::log1p(a); }
};
struct Expm1 {
  static DS_INLINE float apply(float a) { return vectorExpm1(a); }
  static DS_INLINE double apply(double a) { return std::expm1(a); }
};
struct Erf {
  static DS_INLINE float apply(float a) { return vectorErf(a); }
  static DS_INLINE double apply(double a) { return std::erf(a); }
};
struct Tanh {
  static DS_INLINE float apply(float a) { return vectorTanh(a); }
  static DS_INLINE double apply(double a) { return std::tanh(a); }
};
// As GeluTanh.h, by the tanh above.
struct GeluTanh {
  template <typename T> static DS_INLINE T inner(T a) { return T(0.7978845608028654) * (a + T(0.044715) * a * a * a); }
  template <typename T> static DS_INLINE T apply(T a) { return T(0.5) * a * (T(1) + Tanh::apply(inner(a))); }
};
struct GeluTanhSlope {
  template <typename T> static DS_INLINE T apply(T a) {
    const T t = Tanh::apply(GeluTanh::inner(a)), slope = T(0.7978845608028654) * (T(1) + T(0.134145) * a * a);
    return T(0.5) * (T(1) + t) + T(0.5) * a * (T(1) - t * t) * slope;
  }
};
struct Sigmoid {
  template <typename T> static DS_INLINE T apply(T a) { return vectorSigmoid(a); }
};
// Exponents that are constants and frequent, as torch.pow treats them.
struct Cube {
  template <typename T> static DS_INLINE T apply(T a) { return a * a * a; }
};
struct Square {
  template <typename T> static DS_INLINE T apply(T a) { return a * a; }
};
struct ReciprocalSquare {
  template <typename T> static DS_INLINE T apply(T a) { return T(1) / (a * a); }
};

template <typename Op, typename R, typename A>
void unaryLoop(const void *a, const void *, const void *, void *r, int64_t n) {
  const A *from = static_cast<const A *>(a);
  R *to = static_cast<R *>(r);
  DS_INDEPENDENT
  for (int64_t i = 0; i < n; ++i)
    to[i] = Op::apply(from[i]);
}

template <typename Op, typename R, typename A>
void binaryLoop(const void *a, const void *b, const void *, void *r, int64_t n) {
  const A *left = static_cast<const A *>(a), *right = static_cast<const A *>(b);
  R *to = static_cast<R *>(r);
  DS_INDEPENDENT
  for (int64_t i = 0; i < n; ++i)
    to[i] = Op::apply(left[i], right[i]);
}

template <typename T> void selectLoop(const void *a, const void *b, const void *c, void *r, int64_t n) {
  const uint8_t *choice = static_cast<const uint8_t *>(a);
  const T *yes = static_cast<const T *>(b), *no = static_cast<const T *>(c);
  T *to = static_cast<T *>(r);
  DS_INDEPENDENT
  for (int64_t i = 0; i < n; ++i) {
    const T y = yes[i], z = no[i];
    to[i] = choice[i] ? y : z;
  }
}

template <typename R, typename A> void castLoop(const void *a, const void *, const void *, void *r, int64_t n) {
  const A *from = static_cast<const A *>(a);
  R *to = static_cast<R *>(r);
  DS_INDEPENDENT
  for (int64_t i = 0; i < n; ++i)
    if constexpr (std::is_floating_point_v<A> && std::is_integral_v<R>)
      to[i] = truncated<R>(from[i]);
    else
      to[i] = R(from[i]);
}

template <typename A> void castToBoolLoop(const void *a, const void *, const void *, void *r, int64_t n) {
  const A *from = static_cast<const A *>(a);
  uint8_t *to = static_cast<uint8_t *>(r);
  DS_INDEPENDENT
  for (int64_t i = 0; i < n; ++i)
    to[i] = from[i] != A(0);
}

/// Whether all of x lies strictly inside (low, high); false for NaN.
DS_INLINE bool allInside(const float *x, int64_t n, float low, float high) {
  int outside = 0;
  for (int64_t i = 0; i < n; ++i)
    outside |= !(x[i] > low && x[i] < high);
  return outside == 0;
}

/// sin (shift 0) or cos (shift 1) for |x| < 2^20: x = n pi/2 + r in float64, then the series of sin or cos by n.
DS_INLINE float sinOrCos(float x, int64_t shift) {
  constexpr double magic = 6755399441055744.0; // 1.5 * 2^52: rounds to an integer in the low bits
  const double shifted = double(x) * 0.63661977236758134308 + magic;
  const double n = shifted - magic;
  const double r = (double(x) - n * 1.57079632673412561417e+00) - n * 6.07710050650619224932e-11;
  const uint64_t quadrant = std::bit_cast<uint64_t>(shifted) + uint64_t(shift);
  const double s = r * r;
  const double sine = r + r * s * (-1.0 / 6 + s * (1.0 / 120 + s * (-1.0 / 5040 + s * (1.0 / 362880 - s / 39916800))));
  const double cosine =
      1.0 + s * (-0.5 + s * (1.0 / 24 + s * (-1.0 / 720 + s * (1.0 / 40320 - s * (1.0 / 3628800 - s / 479001600)))));
  const double value = (quadrant & 1) ? cosine : sine;
  return float((quadrant & 2) ? -value : value);
}

template <int shift> void trigonometricLoop(const void *a, const void *, const void *, void *r, int64_t n) {
  const float *from = static_cast<const float *>(a);
  float *to = static_cast<float *>(r);
  if (allInside(from, n, -1048576.0f, 1048576.0f)) {
    DS_INDEPENDENT
    for (int64_t i = 0; i < n; ++i)
      to[i] = sinOrCos(from[i], shift);
    return;
  }
  for (int64_t i = 0; i < n; ++i)
    to[i] = shift == 0 ? std::sin(from[i]) : std::cos(from[i]);
}

template <int shift> void trigonometricLoop64(const void *a, const void *, const void *, void *r, int64_t n) {
  const double *from = static_cast<const double *>(a);
  double *to = static_cast<double *>(r);
  for (int64_t i = 0; i < n; ++i)
    to[i] = shift == 0 ? std::sin(from[i]) : std::cos(from[i]);
}

/// a^b for positive a and moderate b, in float64: log(a) by the series of atanh, exp by Taylor's.
DS_INLINE float positivePower(float a, float b) {
  const uint64_t bits = std::bit_cast<uint64_t>(double(a));
  const uint64_t offset = bits - 0x3fe6a09e667f3bcdull; // the bits of sqrt(1/2)
  // The exponent as a double, by way of the low bits of 1.5 * 2^52 (a signed 64-bit conversion needs AVX-512).
  const uint64_t biased = (offset + (uint64_t(1024) << 52)) >> 52;
  const double e = std::bit_cast<double>(biased + 0x4338000000000000ull) - (6755399441055744.0 + 1024.0);
  const double m = std::bit_cast<double>((offset & 0x000fffffffffffffull) + 0x3fe6a09e667f3bcdull);
  const double s = (m - 1.0) / (m + 1.0), q = s * s;
  const double series =
      1.0 + q * (1.0 / 3 + q * (1.0 / 5 + q * (1.0 / 7 + q * (1.0 / 9 + q * (1.0 / 11 + q * (1.0 / 13))))));
  double y = double(b) * (e + 2.0 * s * series * 1.44269504088896340736); // b * log2(a)
  y = y < -200.0 ? -200.0 : y;
  y = y > 200.0 ? 200.0 : y;
  constexpr double magic = 6755399441055744.0;
  const double shifted = y + magic;
  const double r = (y - (shifted - magic)) * 0.69314718055994530942;
  const double power = std::bit_cast<double>((std::bit_cast<uint64_t>(shifted) << 52) + 0x3ff0000000000000ull);
  const double exponential =
      1.0 +
      r * (1.0 + r * (1.0 / 2 +
                      r * (1.0 / 6 +
                           r * (1.0 / 24 +
                                r * (1.0 / 120 +
                                     r * (1.0 / 720 + r * (1.0 / 5040 + r * (1.0 / 40320 + r * (1.0 / 362880)))))))));
  return float(power * exponential);
}

inline void powerLoop(const void *a, const void *b, const void *, void *r, int64_t n) {
  const float *base = static_cast<const float *>(a), *exponent = static_cast<const float *>(b);
  float *to = static_cast<float *>(r);
  if (allInside(base, n, 0.0f, std::numeric_limits<float>::infinity()) && allInside(exponent, n, -1e6f, 1e6f)) {
    DS_INDEPENDENT
    for (int64_t i = 0; i < n; ++i)
      to[i] = positivePower(base[i], exponent[i]);
    return;
  }
  for (int64_t i = 0; i < n; ++i) // negative bases, zeros, infinities and NaN: the rules are libm's
    to[i] = std::pow(base[i], exponent[i]);
}

inline void powerLoop64(const void *a, const void *b, const void *, void *r, int64_t n) {
  const double *base = static_cast<const double *>(a), *exponent = static_cast<const double *>(b);
  double *to = static_cast<double *>(r);
  for (int64_t i = 0; i < n; ++i)
    to[i] = std::pow(base[i], exponent[i]);
}

#include "kernels/elementwise/elementwise_select.h"
