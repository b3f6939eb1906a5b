// Included by ForEachIsa.h into a namespace per instruction set; not a header of its own.

template <typename T> void lionRun(T *p, const T *g, T *m, int64_t n, const LionNumbers<T> &k) {
  DS_INDEPENDENT
  for (int64_t i = 0; i < n; ++i) {
    const T gradient = g[i] * k.clip, direction = m[i] * k.beta1 + k.oneMinusBeta1 * gradient;
    const T change = direction > 0 ? -k.lr : direction < 0 ? k.lr : T(0);
    p[i] = p[i] * k.decay + change;
    m[i] = m[i] * k.beta2 + k.oneMinusBeta2 * gradient;
  }
}
