// Included by ForEachIsa.h into a namespace per instruction set; not a header of its own.

/// torch.optim.AdamW's single-tensor update, operation by operation (no fused multiply-add): mul_, lerp_, addcmul_,
/// sqrt, div, add_, addcdiv_.
template <typename T> void adamwRun(T *p, const T *g, T *m, T *v, int64_t n, const AdamWCoefficients<T> &k) {
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
