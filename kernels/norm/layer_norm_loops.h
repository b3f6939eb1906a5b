// Included by ForEachIsa.h into a namespace per instruction set; not a header of its own.

template <typename T>
void layerNormRow(const T *x, const T *gamma, const T *beta, T *y, T *meanOut, T *rstdOut, int64_t n, double epsilon) {
  const T mean = T(sumOf(x, n) / double(n));
  const T rstd = T(1 / std::sqrt(squaredDeviations(x, mean, n) / double(n) + epsilon));
  *meanOut = mean;
  *rstdOut = rstd;
  DS_INDEPENDENT
  for (int64_t i = 0; i < n; ++i)
    y[i] = (x[i] - mean) * rstd * gamma[i] + beta[i];
}

/// dx of one row, with `residual`, which may be null; its part of dgamma and dbeta is added to the partial sums [n].
template <typename T>
void layerNormGradRow(const T *dy, const T *x, const T *gamma, T mean, T rstd, const T *residual, T *dx, T *dgamma,
                      T *dbeta, int64_t n) {
  constexpr int64_t lanes = Lanes<T>::count;
  const auto center = Lanes<T>::all(mean), scale = Lanes<T>::all(rstd);
  auto sumH = Lanes<T>::all(0), sumHn = sumH;
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const auto h = Lanes<T>::load(dy + i) * Lanes<T>::load(gamma + i);
    sumH = sumH + h;
    sumHn = sumHn + h * ((Lanes<T>::load(x + i) - center) * scale);
  }
  T meanH = sumH.sum(), meanHn = sumHn.sum();
  for (; i < n; ++i) {
    meanH += dy[i] * gamma[i];
    meanHn += dy[i] * gamma[i] * ((x[i] - mean) * rstd);
  }
  meanH /= T(n);
  meanHn /= T(n);
  const auto finish = [&](auto added) {
    DS_INDEPENDENT
    for (int64_t k = 0; k < n; ++k) {
      const T g = dy[k], normal = (x[k] - mean) * rstd;
      dgamma[k] += g * normal;
      dbeta[k] += g;
      dx[k] = added(rstd * (g * gamma[k] - meanH - normal * meanHn), k);
    }
  };
  if (residual)
    finish([&](T value, int64_t k) { return value + residual[k]; });
  else
    finish([](T value, int64_t) { return value; });
}
