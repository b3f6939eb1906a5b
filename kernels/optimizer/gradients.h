//===- gradients.h - an update's gradients in the type of its parameter ----===//
#pragma once

#include "kernels/Numbers.h"

#include <algorithm>
#include <cstdint>

namespace ds::kernels {

/// Elements of 16 bits that are widened at once: whole leaves of 64, so that lamb's sums are the same.
inline constexpr int64_t mostWidened = 1024;

/// Calls run(first, count, g) for `count` elements of an update from `first` on, g their gradients in the parameter's
/// type. Gradients of 16 bits are widened some at a time, in the processor's nearest cache: memory is read by 2 bytes.
template <typename T, typename Run>
void withGradients(const void *gradients, DType dtype, int64_t first, int64_t count, Run run) {
  if (!isNarrowFloat(dtype))
    return run(first, count, static_cast<const T *>(gradients) + first);
  withNarrowFloat(dtype, [&](auto zero) {
    T wide[mostWidened];
    const auto *narrow = static_cast<const decltype(zero) *>(gradients);
    for (const int64_t end = first + count; first < end; first += mostWidened) {
      const int64_t some = std::min(mostWidened, end - first);
      for (int64_t i = 0; i < some; ++i)
        wide[i] = T(float(narrow[first + i]));
      run(first, some, wide);
    }
  });
}

} // namespace ds::kernels
