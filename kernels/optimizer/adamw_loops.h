// Included by ForEachIsa.h into a namespace per instruction set; not a header of its own.

/// torch.optim.AdamW's single-tensor update, operation by operation (no fused multiply-add): mul_, lerp_, addcmul_,
/// sqrt, div, add_, addcdiv_.
template <typename T>
DS_INLINE void adamwElements(T *p, const T *g, T *m, T *v, int64_t n, const AdamWCoefficients<T> &k) {
  DS_INDEPENDENT
  for (int64_t i = 0; i < n; ++i) {
    const T parameter = p[i] * k.decay, gradient = g[i] * k.clip + k.coupledDecay * parameter;
    const T difference = gradient - m[i];
    const T first = k.lerpFromStart ? m[i] + k.lerpWeight * difference : gradient - k.lerpRest * difference;
    const T second = v[i] * k.beta2 + k.oneMinusBeta2 * gradient * gradient;
    m[i] = first;
    v[i] = second;
    p[i] = parameter + k.minusStepSize * first / (std::sqrt(second) / k.correction2 + k.epsilon);
  }
}

/// Asks for the lines of each tensor 2 KiB ahead: processors do so by themselves, too, but not across the end of a
/// page, and would wait for the first lines of each (docs/offload.md). Asking for what lies behind a tensor reads
/// nothing.
template <typename T> void adamwRun(T *p, const T *g, T *m, T *v, int64_t n, const AdamWCoefficients<T> &k) {
  constexpr int64_t line = 64 / sizeof(T), block = 4 * line, ahead = 32 * line;
  int64_t i = 0;
  for (; i + block <= n; i += block) {
    for (int64_t j = i + ahead; j < i + ahead + block; j += line) {
      __builtin_prefetch(p + j);
      __builtin_prefetch(g + j);
      __builtin_prefetch(m + j);
      __builtin_prefetch(v + j);
    }
    adamwElements(p + i, g + i, m + i, v + i, block, k);
  }
  adamwElements(p + i, g + i, m + i, v + i, n - i, k);
}
