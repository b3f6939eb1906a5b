// Included by ForEachIsa.h into a namespace per instruction set; not a header of its own.

template <typename T> double sumRun(const T *x, int64_t n) { return sumOf(x, n); }
template <typename T> double maxRun(const T *x, int64_t n) { return double(maxOf(x, n)); }

/// Columns that are reduced side by side.
inline constexpr int64_t reduceColumns = 128;

/// into[c] += the sum of column c of x [rows, columns], rows `stride` apart; groups of 16 rows are added in T.
template <typename T> void sumDown(const T *x, int64_t rows, int64_t stride, int64_t columns, double *into) {
  constexpr int64_t group = 16;
  T part[reduceColumns];
  for (int64_t begin = 0; begin < rows; begin += group) {
    const int64_t end = begin + group < rows ? begin + group : rows;
    for (int64_t c = 0; c < columns; ++c)
      part[c] = x[begin * stride + c];
    for (int64_t row = begin + 1; row < end; ++row)
      for (int64_t c = 0; c < columns; ++c)
        part[c] += x[row * stride + c];
    for (int64_t c = 0; c < columns; ++c)
      into[c] += double(part[c]);
  }
}

template <typename T> void maxDown(const T *x, int64_t rows, int64_t stride, int64_t columns, double *into) {
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t c = 0; c < columns; ++c) {
      const double value = double(x[row * stride + c]);
      into[c] = into[c] > value || into[c] != into[c] ? into[c] : value;
    }
}
