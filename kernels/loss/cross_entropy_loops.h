// Included by ForEachIsa.h into a namespace per instruction set; not a header of its own.
#include "kernels/reduce/softmax_loops.h"

/// dx = exp(x - lse) * scale; dx may be x.
template <typename T> void scaledSoftmax(const T *x, T lse, T scale, T *dx, int64_t n) {
  DS_INDEPENDENT
  for (int64_t i = 0; i < n; ++i)
    dx[i] = vectorExp(x[i] - lse) * scale;
}
