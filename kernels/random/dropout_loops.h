// Included by ForEachIsa.h into a namespace per instruction set; not a header of its own.
#include "kernels/random/philox_loops.h"

/// Elements [0, n) of x, of which the first has that number in the whole tensor. Keeps where word > limit.
template <typename T>
void dropoutRun(const T *x, T *y, int64_t n, uint64_t key, uint32_t microbatch, uint32_t opId, uint64_t number,
                uint32_t limit, T scale) {
  constexpr int64_t width = 4 * philoxBlocks;
  const auto skipped = int64_t(number % 4); // of the first block
  for (int64_t begin = 0; begin < n;) {
    uint32_t words[width];
    const int64_t skip = begin == 0 ? skipped : 0, count = begin + width - skip <= n ? width - skip : n - begin;
    drawWords(key, microbatch, opId, (number + uint64_t(begin)) / 4, words);
    const T *from = x + begin;
    T *to = y + begin;
    DS_INDEPENDENT
    for (int64_t i = 0; i < count; ++i) {
      const T kept = from[i] * scale;
      to[i] = words[skip + i] > limit ? kept : T(0);
    }
    begin += count;
  }
}
