//===- state.h - what an update reads and writes, in the type that it computes in ----===//
#pragma once

#include "kernels/Numbers.h"
#include "kernels/optimizer/gradients.h"

#include <cstddef>
#include <cstdint>

namespace ds::kernels {

/// Elements of a variable that an update changes: where they lie or, of a variable of 16 bits, at most mostWidened
/// copies in the processor's nearest cache, which are rounded to nearest even when this ends.
template <typename T> class State {
public:
  State(void *tensor, DType dtype, int64_t first, int64_t count)
      : at_(static_cast<std::byte *>(tensor) + first * byteSize(dtype)), dtype_(dtype), count_(count),
        elements_(isNarrowFloat(dtype) ? copies_ : reinterpret_cast<T *>(at_)) {
    if (isNarrowFloat(dtype))
      withNarrowFloat(dtype, [&](auto zero) {
        const auto *narrow = reinterpret_cast<const decltype(zero) *>(at_);
        for (int64_t i = 0; i < count_; ++i)
          copies_[i] = T(float(narrow[i]));
      });
  }
  ~State() {
    if (isNarrowFloat(dtype_))
      withNarrowFloat(dtype_, [&](auto zero) {
        auto *narrow = reinterpret_cast<decltype(zero) *>(at_);
        for (int64_t i = 0; i < count_; ++i)
          narrow[i] = decltype(zero)(float(copies_[i]));
      });
  }
  State(const State &) = delete;
  State &operator=(const State &) = delete;

  T *elements() const { return elements_; }

private:
  std::byte *at_;
  DType dtype_;
  int64_t count_;
  T copies_[mostWidened]; ///< of 16 bits
  T *elements_;
};

} // namespace ds::kernels
