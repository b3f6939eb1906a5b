// Included by ForEachIsa.h into a namespace per instruction set; not a header of its own.

/// torch.optim.SGD's single-tensor update.
template <typename T> void sgdRun(T *p, const T *g, int64_t n, T clip, T weightDecay, T minusLr) {
  DS_INDEPENDENT
  for (int64_t i = 0; i < n; ++i)
    p[i] = p[i] + minusLr * (g[i] * clip + weightDecay * p[i]);
}

template <typename T>
void sgdMomentumRun(T *p, const T *g, T *buffer, int64_t n, T clip, T weightDecay, T minusLr, T momentum, bool first,
                    bool nesterov) {
  DS_INDEPENDENT
  for (int64_t i = 0; i < n; ++i) {
    const T gradient = g[i] * clip + weightDecay * p[i], old = buffer[i];
    const T kept = first ? gradient : old * momentum + gradient;
    buffer[i] = kept;
    p[i] = p[i] + minusLr * (nesterov ? gradient + momentum * kept : kept);
  }
}
