// Included by ForEachIsa.h into a namespace per instruction set; not a header of its own.
//
// One channel: `samples` runs of `places` elements, `stride` apart.

/// Writes mean, variance and rstd.
template <typename T>
void channelStatistics(const T *x, int64_t samples, int64_t places, int64_t stride, double epsilon, T *mean,
                       T *variance, T *rstd) {
  const double count = double(samples) * double(places);
  double sum = 0, squares = 0;
  for (int64_t n = 0; n < samples; ++n)
    sum += sumOf(x + n * stride, places);
  *mean = T(sum / count);
  for (int64_t n = 0; n < samples; ++n)
    squares += squaredDeviations(x + n * stride, *mean, places);
  *variance = T(squares / count);
  *rstd = T(1 / std::sqrt(squares / count + epsilon));
}

/// y = (x - mean) * factor + beta.
template <typename T>
void scaleChannel(const T *x, T *y, int64_t samples, int64_t places, int64_t stride, T mean, T factor, T beta) {
  for (int64_t n = 0; n < samples; ++n) {
    const T *from = x + n * stride;
    T *to = y + n * stride;
    DS_INDEPENDENT
    for (int64_t i = 0; i < places; ++i)
      to[i] = (from[i] - mean) * factor + beta;
  }
}

/// Sums of dy and of dy * (x - mean).
template <typename T>
void channelGradSums(const T *dy, const T *x, int64_t samples, int64_t places, int64_t stride, T mean, double &sum,
                     double &dot) {
  constexpr int64_t lanes = Lanes<T>::count;
  const auto center = Lanes<T>::all(mean);
  sum = dot = 0;
  for (int64_t n = 0; n < samples; ++n) {
    const T *g = dy + n * stride, *v = x + n * stride;
    sum += sumOf(g, places);
    for (int64_t begin = 0; begin < places; begin += 1024) { // float64 over blocks, as sumOf
      const int64_t end = begin + 1024 < places ? begin + 1024 : places;
      auto sums = Lanes<T>::all(0);
      int64_t i = begin;
      for (; i + lanes <= end; i += lanes)
        sums = sums + Lanes<T>::load(g + i) * (Lanes<T>::load(v + i) - center);
      T rest = sums.sum();
      for (; i < end; ++i)
        rest += g[i] * (v[i] - mean);
      dot += double(rest);
    }
  }
}

/// dx = factor * (dy - meanOfDy - (x - mean) * pull).
template <typename T>
void channelGrad(const T *dy, const T *x, T *dx, int64_t samples, int64_t places, int64_t stride, T mean, T factor,
                 T meanOfDy, T pull) {
  for (int64_t n = 0; n < samples; ++n) {
    const T *g = dy + n * stride, *v = x + n * stride;
    T *to = dx + n * stride;
    DS_INDEPENDENT
    for (int64_t i = 0; i < places; ++i)
      to[i] = factor * (g[i] - meanOfDy - (v[i] - mean) * pull);
  }
}
