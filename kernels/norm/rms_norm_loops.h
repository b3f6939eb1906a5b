// Included by ForEachIsa.h into a namespace per instruction set; not a header of its own.

template <typename T> void rmsNormRow(const T *x, const T *gamma, T *y, T *rrmsOut, int64_t n, double epsilon) {
  const T rrms = T(1 / std::sqrt(dotOf(x, x, n) / double(n) + epsilon));
  *rrmsOut = rrms;
  DS_INDEPENDENT
  for (int64_t i = 0; i < n; ++i)
    y[i] = x[i] * rrms * gamma[i];
}

/// dx of one row, with `residual`, which may be null; its part of dgamma is added to the partial sums [n].
template <typename T>
void rmsNormGradRow(const T *dy, const T *x, const T *gamma, T rrms, const T *residual, T *dx, T *dgamma, int64_t n) {
  constexpr int64_t lanes = Lanes<T>::count;
  auto sums = Lanes<T>::all(0);
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes)
    sums = sums + Lanes<T>::load(dy + i) * Lanes<T>::load(gamma + i) * Lanes<T>::load(x + i);
  T sum = sums.sum();
  for (; i < n; ++i)
    sum += dy[i] * gamma[i] * x[i];
  const T pull = sum / T(n) * rrms * rrms;
  const auto finish = [&](auto added) {
    DS_INDEPENDENT
    for (int64_t k = 0; k < n; ++k) {
      const T g = dy[k], value = x[k];
      dgamma[k] += g * (value * rrms);
      dx[k] = added(rrms * (g * gamma[k] - value * pull), k);
    }
  };
  if (residual)
    finish([&](T value, int64_t k) { return value + residual[k]; });
  else
    finish([](T value, int64_t) { return value; });
}
