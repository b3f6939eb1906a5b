// Included by ForEachIsa.h into a namespace per instruction set; not a header of its own.
#include "kernels/random/philox_loops.h"

/// Elements [0, n) of x, the first of which is number 4 * firstBlock of the tensor. Keeps where word > limit.
template <typename T>
void dropoutRun(const T *x, T *y, int64_t n, uint64_t key, uint32_t microbatch, uint32_t opId, uint64_t firstBlock,
                uint32_t limit, T scale) {
  constexpr int64_t width = 4 * philoxBlocks;
  for (int64_t begin = 0; begin < n; begin += width) {
    uint32_t words[width];
    drawWords(key, microbatch, opId, firstBlock + uint64_t(begin / 4), words);
    const int64_t count = begin + width <= n ? width : n - begin;
    const T *from = x + begin;
    T *to = y + begin;
    DS_INDEPENDENT
    for (int64_t i = 0; i < count; ++i) {
      const T kept = from[i] * scale;
      to[i] = words[i] > limit ? kept : T(0);
    }
  }
}
