// Included by ForEachIsa.h into a namespace per instruction set; not a header of its own.
//
// y[i] takes in x[i * stride], for a row of places.

template <typename T> void maxElement(const T *x, int64_t stride, T *y, int64_t n) {
  const auto larger = [](T value, T best) { return (value > best) | (value != value) ? value : best; };
  if (stride == 1) {
    DS_INDEPENDENT
    for (int64_t i = 0; i < n; ++i)
      y[i] = larger(x[i], y[i]);
    return;
  }
  DS_INDEPENDENT
  for (int64_t i = 0; i < n; ++i)
    y[i] = larger(x[i * stride], y[i]);
}

template <typename T> void addElement(const T *x, int64_t stride, T *y, int64_t n) {
  if (stride == 1) {
    DS_INDEPENDENT
    for (int64_t i = 0; i < n; ++i)
      y[i] += x[i];
    return;
  }
  DS_INDEPENDENT
  for (int64_t i = 0; i < n; ++i)
    y[i] += x[i * stride];
}
