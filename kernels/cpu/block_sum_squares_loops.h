// Included by ForEachIsa.h into a namespace per instruction set; not a header of its own.

/// Sum of x[i]^2 for n <= 1024, in float64.
template <typename T> double sumSquares(const T *x, int64_t n) {
  double wide[1024];
  for (int64_t i = 0; i < n; ++i)
    wide[i] = double(x[i]);
  return dotOf(wide, wide, n);
}
