// Included by ForEachIsa.h into a namespace per instruction set; not a header of its own.
//
// `Stored` is the type of the logits in memory: T, or 16 bits, of which a chunk at a time is widened to T. Both have
// the same bits: widening is exact, and chunks are those of the sums.
#include "kernels/reduce/softmax_loops.h"

/// Up to softmaxChunk elements of `x` as T: `x` itself, or `chunk` with copies.
template <typename Stored, typename T> DS_INLINE const T *widenedChunk(const Stored *x, T *chunk, int64_t n) {
  if constexpr (std::is_same_v<Stored, T>) {
    return x;
  } else {
    for (int64_t i = 0; i < n; ++i)
      chunk[i] = T(x[i]);
    return chunk;
  }
}

/// log(sum(exp(x))), without storing the exponentials; -inf of no elements.
template <typename Stored, typename T> double logSumExp(const Stored *x, int64_t n) {
  T chunk[softmaxChunk], buffer[softmaxChunk];
  T maximum = -std::numeric_limits<T>::infinity();
  for (int64_t begin = 0; begin < n; begin += softmaxChunk) {
    const int64_t count = begin + softmaxChunk < n ? softmaxChunk : n - begin;
    const T largest = maxOf(widenedChunk(x + begin, chunk, count), count);
    maximum = maximum > largest || maximum != maximum ? maximum : largest;
  }
  double sum = 0;
  for (int64_t begin = 0; begin < n; begin += softmaxChunk) {
    const int64_t count = begin + softmaxChunk < n ? softmaxChunk : n - begin;
    sum += exponentials(widenedChunk(x + begin, chunk, count), maximum, buffer, count);
  }
  return double(maximum) + std::log(sum);
}

/// dx = exp(x - lse) * scale, rounded once where it is of 16 bits; dx may be x.
template <typename Stored, typename T> void scaledSoftmax(const Stored *x, T lse, T scale, Stored *dx, int64_t n) {
  T chunk[softmaxChunk];
  for (int64_t begin = 0; begin < n; begin += softmaxChunk) {
    const int64_t count = begin + softmaxChunk < n ? softmaxChunk : n - begin;
    const T *wide = widenedChunk(x + begin, chunk, count);
    T *result = chunk;
    if constexpr (std::is_same_v<Stored, T>)
      result = dx + begin;
    DS_INDEPENDENT
    for (int64_t i = 0; i < count; ++i)
      result[i] = vectorExp(wide[i] - lse) * scale;
    if constexpr (!std::is_same_v<Stored, T>)
      for (int64_t i = 0; i < count; ++i)
        dx[begin + i] = Stored(result[i]);
  }
}
