// Included by ForEachIsa.h into a namespace per instruction set; not a header of its own.

/// torch.optim.Adagrad's single-tensor update, operation by operation: addcmul_, sqrt, add_, addcdiv_.
template <typename T>
void adagradRun(T *p, const T *g, T *sum, int64_t n, T clip, T weightDecay, T minusRate, T epsilon) {
  DS_INDEPENDENT
  for (int64_t i = 0; i < n; ++i) {
    const T gradient = g[i] * clip + weightDecay * p[i], squares = sum[i] + gradient * gradient;
    sum[i] = squares;
    p[i] = p[i] + minusRate * gradient / (std::sqrt(squares) + epsilon);
  }
}
