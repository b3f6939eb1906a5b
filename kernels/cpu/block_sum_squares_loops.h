// Included by ForEachIsa.h into a namespace per instruction set; not a header of its own.

/// Sum of x[i]^2 for n <= 1024, in float64. Always of 1024 elements, so that a short block has the bits of the same
/// block with zeros after it: in a bucket, that is how a parameter ends.
template <typename T> double sumSquares(const T *x, int64_t n) {
  double wide[1024] = {};
  for (int64_t i = 0; i < n; ++i)
    wide[i] = double(x[i]);
  return dotOf(wide, wide, 1024);
}
