// Included by ForEachIsa.h into a namespace per instruction set; not a header of its own.

/// Both moments of n elements; adds to the sums of the squares of the parameter and of its update: leaves from the
/// first element on, in order.
template <typename T>
void lambMoments(const T *p, const T *g, T *m, T *v, int64_t n, const LambNumbers<T> &k, LambSquares &squares) {
  for (int64_t begin = 0; begin < n; begin += lambLeaf) {
    const int64_t count = begin + lambLeaf < n ? lambLeaf : n - begin;
    double parameters[lambLeaf] = {}, updates[lambLeaf] = {};
    DS_INDEPENDENT
    for (int64_t j = 0; j < count; ++j) {
      const int64_t i = begin + j;
      const T gradient = g[i] * k.clip;
      const T first = m[i] * k.beta1 + k.oneMinusBeta1 * gradient;
      const T second = v[i] * k.beta2 + k.oneMinusBeta2 * gradient * gradient;
      m[i] = first;
      v[i] = second;
      parameters[j] = double(p[i]);
      updates[j] = double(first / (std::sqrt(second) + k.epsilon) + k.weightDecay * p[i]);
    }
    squares.parameter += dotOf(parameters, parameters, lambLeaf);
    squares.update += dotOf(updates, updates, lambLeaf);
  }
}

/// The step along the update, `distance` times its length.
template <typename T> void lambStep(T *p, const T *m, const T *v, int64_t n, T distance, const LambNumbers<T> &k) {
  DS_INDEPENDENT
  for (int64_t i = 0; i < n; ++i)
    p[i] = p[i] - distance * (m[i] / (std::sqrt(v[i]) + k.epsilon) + k.weightDecay * p[i]);
}
