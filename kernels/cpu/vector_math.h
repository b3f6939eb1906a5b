// Included by ForEachIsa.h into a namespace per instruction set; not a header of its own.
//
// Scalar functions without branches, so that a loop over them becomes vector code, and sums over lanes of a fixed
// number. Float polynomials are minimax fits; errors are in units in the last place of the float result.

/// Calls of these in a loop over floats vectorise; the float64 versions are libm's.
DS_INLINE double vectorExp(double x) { return std::exp(x); }

/// 2^n for n in [-126, 127].
DS_INLINE float powerOfTwo(int32_t n) { return std::bit_cast<float>(uint32_t(n + 127) << 23); }

/// exp(x) to 1 ulp: x = n ln 2 + r, |r| <= ln 2 / 2. Underflows through the denormals to 0.
DS_INLINE float vectorExp(float x) {
  constexpr float magic = 12582912.0f; // 1.5 * 2^23: adding it rounds to an integer, left in the low bits
  x = x < -104.0f ? -104.0f : x;
  x = x > 89.0f ? 89.0f : x;
  const float shifted = x * 1.442695041f + magic;
  const float n = shifted - magic;
  const float r = (x - n * 0.693359375f) - n * -2.12194440e-4f; // ln 2 in two parts; the first has 9 bits
  float p = 1.381313101e-03f;
  p = p * r + 8.369424527e-03f;
  p = p * r + 4.166845738e-02f;
  p = p * r + 1.666651474e-01f;
  p = p * r + 4.999999305e-01f;
  p = p * (r * r) + r + 1.0f;
  // Two factors, since 2^n alone may be below the normal numbers or above the largest. A NaN stays one whatever they
  // are.
  const int32_t power = int32_t(std::bit_cast<uint32_t>(shifted) - std::bit_cast<uint32_t>(magic));
  const int32_t clamped = power < -160 ? -160 : power > 160 ? 160 : power;
  const int32_t half = clamped >> 1;
  return p * powerOfTwo(half) * powerOfTwo(clamped - half);
}

/// log(x) to 1 ulp: x = 2^e m with m in [sqrt(1/2), sqrt(2)).
DS_INLINE float vectorLog(float x) {
  const bool denormal = x < 1.17549435e-38f;
  const float scaled = denormal ? x * 8388608.0f : x;
  const uint32_t bits = std::bit_cast<uint32_t>(scaled);
  const uint32_t offset = bits - 0x3f3504f3u; // the bits of sqrt(1/2)
  const float e = float(int32_t(offset) >> 23) - (denormal ? 23.0f : 0.0f);
  const float f = std::bit_cast<float>((offset & 0x007fffffu) + 0x3f3504f3u) - 1.0f;
  float p = 6.746684349e-02f;
  p = p * f - 1.167577178e-01f;
  p = p * f + 1.188820917e-01f;
  p = p * f - 1.240557378e-01f;
  p = p * f + 1.421954428e-01f;
  p = p * f - 1.666799634e-01f;
  p = p * f + 2.000211906e-01f;
  p = p * f - 2.500000960e-01f;
  p = p * f + 3.333331260e-01f;
  const float square = f * f;
  float result = square * f * p + e * -2.12194440e-4f;
  result = result - 0.5f * square + f + e * 0.693359375f;
  constexpr float infinity = std::numeric_limits<float>::infinity();
  result = x == infinity ? infinity : result;
  result = x == 0.0f ? -infinity : result;
  return x >= 0.0f ? result : std::numeric_limits<float>::quiet_NaN();
}

/// log(1 + x) to 2 ulp, by what the sum rounds off: Goldberg, What Every Computer Scientist Should Know (1991).
DS_INLINE float vectorLog1p(float x) {
  const float sum = 1.0f + x, lost = x - (sum - 1.0f);
  float result = vectorLog(sum) + lost / sum;
  result = sum == 0.0f ? -std::numeric_limits<float>::infinity() : result;
  return x == std::numeric_limits<float>::infinity() ? x : result;
}

/// exp(x) - 1 to 3 ulp: Kahan's (e^x - 1) x / log(e^x), in which the errors of e^x cancel.
DS_INLINE float vectorExpm1(float x) {
  const float power = vectorExp(x), rest = power - 1.0f;
  const float result = rest * (x / vectorLog(power));
  return power == 1.0f ? x : std::fabs(x) < 17.0f ? result : rest; // there 1 is below a digit of it, or e^x of 1
}

/// tanh(x) to 2 ulp: an odd polynomial near 0, else 1 - 2 / (exp(2 |x|) + 1).
DS_INLINE float vectorTanh(float x) {
  const float t = std::fabs(x), s = x * x;
  float p = 2.142754273e-03f;
  p = p * s - 8.177178945e-03f;
  p = p * s + 2.170061775e-02f;
  p = p * s - 5.394674809e-02f;
  p = p * s + 1.333320590e-01f;
  p = p * s - 3.333333080e-01f;
  const float small = p * s * x + x;
  const float large = std::copysign(1.0f - 2.0f / (vectorExp(2.0f * t) + 1.0f), x);
  return t < 0.625f ? small : large + (x - x); // x - x: 0, or NaN for NaN
}

/// erf(x) to 2 ulp: an odd polynomial up to 1, else 1 - exp(-G(|x|)) with G = -log(erfc).
DS_INLINE float vectorErf(float x) {
  const float t = std::fabs(x), s = x * x;
  float p = 7.854008914e-05f;
  p = p * s - 8.010241947e-04f;
  p = p * s + 5.188333780e-03f;
  p = p * s - 2.685381563e-02f;
  p = p * s + 1.128358526e-01f;
  p = p * s - 3.761262584e-01f;
  p = p * s + 1.283791661e-01f;
  const float small = p * x + x;
  const float u = t > 4.0f ? 4.0f : t;
  float g = -2.513264810e-07f;
  g = g * u + 2.531480645e-05f;
  g = g * u - 4.637880064e-04f;
  g = g * u + 4.282382578e-03f;
  g = g * u - 2.537355564e-02f;
  g = g * u + 1.086389976e-01f;
  g = g * u + 6.330396127e-01f;
  g = g * u + 1.129661157e+00f;
  g = g * u - 2.043598708e-04f;
  const float large = std::copysign(1.0f - vectorExp(-g), x);
  return t <= 1.0f ? small : x != x ? x : large;
}

/// 1 / (1 + exp(-x)) to 2 ulp, also far below 0, where it is exp(x).
template <typename T> DS_INLINE T vectorSigmoid(T x) {
  const T e = vectorExp(-std::fabs(x));
  return (x < T(0) ? e : T(1)) / (T(1) + e);
}

/// Lanes of one accumulator: 64 bytes whatever the registers' width, so that sums have one order everywhere.
template <typename T> struct Lanes {
  static constexpr int count = 64 / int(sizeof(T));
  static constexpr int parts = 64 / DS_VECTOR_BYTES;
  typedef T Part __attribute__((vector_size(DS_VECTOR_BYTES)));
  typedef T Loose __attribute__((vector_size(DS_VECTOR_BYTES), aligned(alignof(T)), may_alias));
  Part part[parts];

  static DS_INLINE Lanes all(T value) {
    Lanes lanes;
    for (int i = 0; i < parts; ++i)
      lanes.part[i] = Part{} + value;
    return lanes;
  }
  static DS_INLINE Lanes load(const T *from) {
    Lanes lanes;
    for (int i = 0; i < parts; ++i)
      lanes.part[i] = *reinterpret_cast<const Loose *>(from + i * (count / parts));
    return lanes;
  }
  DS_INLINE void store(T *to) const {
    for (int i = 0; i < parts; ++i)
      *reinterpret_cast<Loose *>(to + i * (count / parts)) = part[i];
  }
  DS_INLINE Lanes operator+(const Lanes &other) const {
    Lanes lanes;
    for (int i = 0; i < parts; ++i)
      lanes.part[i] = part[i] + other.part[i];
    return lanes;
  }
  DS_INLINE Lanes operator-(const Lanes &other) const {
    Lanes lanes;
    for (int i = 0; i < parts; ++i)
      lanes.part[i] = part[i] - other.part[i];
    return lanes;
  }
  DS_INLINE Lanes operator*(const Lanes &other) const {
    Lanes lanes;
    for (int i = 0; i < parts; ++i)
      lanes.part[i] = part[i] * other.part[i];
    return lanes;
  }
  /// The larger of each lane; a NaN in either wins.
  DS_INLINE Lanes max(const Lanes &other) const {
    Lanes lanes;
    for (int i = 0; i < parts; ++i)
      lanes.part[i] = ((part[i] > other.part[i]) | (part[i] != part[i])) ? part[i] : other.part[i];
    return lanes;
  }
  /// Lanes added in pairs: i with i + count / 2, and so on.
  DS_INLINE T sum() const {
    T lane[count];
    store(lane);
    for (int width = count / 2; width > 0; width /= 2)
      for (int i = 0; i < width; ++i)
        lane[i] += lane[i + width];
    return lane[0];
  }
  DS_INLINE T largest() const {
    T lane[count];
    store(lane);
    T result = lane[0];
    for (int i = 1; i < count; ++i)
      result = result > lane[i] || result != result ? result : lane[i];
    return result;
  }
};

/// Sum of x[0..n), in float64 over blocks of 1024 elements.
template <typename T> DS_INLINE double sumOf(const T *x, int64_t n) {
  constexpr int64_t lanes = Lanes<T>::count;
  double total = 0;
  for (int64_t begin = 0; begin < n; begin += 1024) {
    const int64_t end = n - begin > 1024 ? begin + 1024 : n;
    auto first = Lanes<T>::all(0), second = first;
    int64_t i = begin;
    for (; i + 2 * lanes <= end; i += 2 * lanes) {
      first = first + Lanes<T>::load(x + i);
      second = second + Lanes<T>::load(x + i + lanes);
    }
    T rest = (first + second).sum();
    for (; i < end; ++i)
      rest += x[i];
    total += double(rest);
  }
  return total;
}

/// Sum of x[i] * y[i], likewise.
template <typename T> DS_INLINE double dotOf(const T *x, const T *y, int64_t n) {
  constexpr int64_t lanes = Lanes<T>::count;
  double total = 0;
  for (int64_t begin = 0; begin < n; begin += 1024) {
    const int64_t end = n - begin > 1024 ? begin + 1024 : n;
    auto first = Lanes<T>::all(0), second = first;
    int64_t i = begin;
    for (; i + 2 * lanes <= end; i += 2 * lanes) {
      first = first + Lanes<T>::load(x + i) * Lanes<T>::load(y + i);
      second = second + Lanes<T>::load(x + i + lanes) * Lanes<T>::load(y + i + lanes);
    }
    T rest = (first + second).sum();
    for (; i < end; ++i)
      rest += x[i] * y[i];
    total += double(rest);
  }
  return total;
}

/// The largest of x[0..n), -inf of none; NaN wins.
template <typename T> DS_INLINE T maxOf(const T *x, int64_t n) {
  constexpr int64_t lanes = Lanes<T>::count;
  auto best = Lanes<T>::all(-std::numeric_limits<T>::infinity());
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes)
    best = best.max(Lanes<T>::load(x + i));
  T result = best.largest();
  for (; i < n; ++i)
    result = result > x[i] || result != result ? result : x[i];
  return result;
}

/// Sum of (x[i] - mean)^2, likewise.
template <typename T> DS_INLINE double squaredDeviations(const T *x, T mean, int64_t n) {
  constexpr int64_t lanes = Lanes<T>::count;
  const auto center = Lanes<T>::all(mean);
  double total = 0;
  for (int64_t begin = 0; begin < n; begin += 1024) {
    const int64_t end = n - begin > 1024 ? begin + 1024 : n;
    auto first = Lanes<T>::all(0), second = first;
    int64_t i = begin;
    for (; i + 2 * lanes <= end; i += 2 * lanes) {
      const auto a = Lanes<T>::load(x + i) - center, b = Lanes<T>::load(x + i + lanes) - center;
      first = first + a * a;
      second = second + b * b;
    }
    T rest = (first + second).sum();
    for (; i < end; ++i)
      rest += (x[i] - mean) * (x[i] - mean);
    total += double(rest);
  }
  return total;
}

/// out[i] = sum over pieces p, in order, of partial[p * stride + i].
template <typename T> void addPieces(const T *partial, int64_t pieces, int64_t stride, T *out, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    double sum = 0;
    for (int64_t p = 0; p < pieces; ++p)
      sum += double(partial[p * stride + i]);
    out[i] = T(sum);
  }
}
