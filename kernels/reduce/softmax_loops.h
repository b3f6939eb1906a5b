// Included by ForEachIsa.h into a namespace per instruction set; not a header of its own.

/// Elements whose exponentials are taken at once: they stay in the first-level cache until they are added up.
inline constexpr int64_t softmaxChunk = 1024;

/// y = exp(x - shift); the sum of it.
template <typename T> DS_INLINE double exponentials(const T *x, T shift, T *y, int64_t n) {
  double sum = 0;
  for (int64_t begin = 0; begin < n; begin += softmaxChunk) {
    const int64_t count = begin + softmaxChunk < n ? softmaxChunk : n - begin;
    DS_INDEPENDENT
    for (int64_t i = begin; i < begin + count; ++i)
      y[i] = vectorExp(x[i] - shift);
    sum += sumOf(y + begin, count);
  }
  return sum;
}

template <typename T> void softmaxRow(const T *x, T *y, int64_t n) {
  const T scale = T(1 / exponentials(x, maxOf(x, n), y, n));
  DS_INDEPENDENT
  for (int64_t i = 0; i < n; ++i)
    y[i] *= scale;
}

template <typename T> void logSoftmaxRow(const T *x, T *y, int64_t n) {
  // Two steps, maximum first: lse alone may be rounded to the maximum, which would lose small differences.
  const T maximum = maxOf(x, n);
  T buffer[softmaxChunk];
  double sum = 0;
  for (int64_t begin = 0; begin < n; begin += softmaxChunk) {
    const int64_t count = begin + softmaxChunk < n ? softmaxChunk : n - begin;
    sum += exponentials(x + begin, maximum, buffer, count);
  }
  const T logarithm = T(std::log(sum));
  DS_INDEPENDENT
  for (int64_t i = 0; i < n; ++i)
    y[i] = (x[i] - maximum) - logarithm;
}

/// Columns of one strided piece, side by side in memory.
inline constexpr int64_t softmaxColumns = 64;

/// Softmax down up to softmaxColumns columns of x [n, ...], `stride` elements from row to row.
template <typename T> void softmaxDown(const T *x, T *y, int64_t n, int64_t stride, int64_t columns, bool logarithm) {
  T maximum[softmaxColumns], exponential[softmaxColumns], factor[softmaxColumns];
  double sum[softmaxColumns] = {};
  for (int64_t c = 0; c < columns; ++c)
    maximum[c] = -std::numeric_limits<T>::infinity();
  for (int64_t k = 0; k < n; ++k)
    for (int64_t c = 0; c < columns; ++c) {
      const T value = x[k * stride + c];
      maximum[c] = maximum[c] > value || maximum[c] != maximum[c] ? maximum[c] : value;
    }
  for (int64_t k = 0; k < n; ++k) {
    for (int64_t c = 0; c < columns; ++c)
      exponential[c] = vectorExp(x[k * stride + c] - maximum[c]);
    for (int64_t c = 0; c < columns; ++c)
      sum[c] += double(exponential[c]);
  }
  for (int64_t c = 0; c < columns; ++c)
    factor[c] = T(logarithm ? std::log(sum[c]) : 1 / sum[c]);
  for (int64_t k = 0; k < n; ++k)
    for (int64_t c = 0; c < columns; ++c) {
      const T shifted = x[k * stride + c] - maximum[c];
      y[k * stride + c] = logarithm ? shifted - factor[c] : vectorExp(shifted) * factor[c];
    }
}

template <typename T> void softmaxGradRow(const T *y, const T *dy, T *dx, int64_t n) {
  const T sum = T(dotOf(y, dy, n));
  DS_INDEPENDENT
  for (int64_t i = 0; i < n; ++i)
    dx[i] = y[i] * (dy[i] - sum);
}

template <typename T> void logSoftmaxGradRow(const T *y, const T *dy, T *dx, int64_t n) {
  const T sum = T(sumOf(dy, n));
  DS_INDEPENDENT
  for (int64_t i = 0; i < n; ++i)
    dx[i] = dy[i] - vectorExp(y[i]) * sum;
}

template <typename T>
void softmaxGradDown(const T *y, const T *dy, T *dx, int64_t n, int64_t stride, int64_t columns, bool logarithm) {
  double sum[softmaxColumns] = {};
  for (int64_t k = 0; k < n; ++k)
    for (int64_t c = 0; c < columns; ++c)
      sum[c] += logarithm ? double(dy[k * stride + c]) : double(y[k * stride + c]) * double(dy[k * stride + c]);
  for (int64_t k = 0; k < n; ++k)
    for (int64_t c = 0; c < columns; ++c) {
      const T yk = y[k * stride + c], dyk = dy[k * stride + c];
      dx[k * stride + c] = logarithm ? dyk - vectorExp(yk) * T(sum[c]) : yk * (dyk - T(sum[c]));
    }
}
