//===- Shape.h - static tensor shapes -------------------------------------===//
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace ds {

/// Dimensions, outermost first; a scalar has none.
using Shape = std::vector<int64_t>;

/// Number of elements, or nothing if a dimension is negative or the product passes 2^62.
inline std::optional<int64_t> checkedElementCount(std::span<const int64_t> shape) {
  constexpr int64_t limit = int64_t(1) << 62;
  int64_t count = 1;
  for (int64_t dim : shape)
    if (dim == 0)
      count = 0;
  for (int64_t dim : shape) {
    if (dim < 0)
      return std::nullopt;
    if (count != 0 && dim > limit / count)
      return std::nullopt;
    count *= dim;
  }
  return count;
}

/// Number of elements of a shape that is known to be valid.
inline int64_t elementCount(std::span<const int64_t> shape) {
  int64_t count = 1;
  for (int64_t dim : shape)
    count *= dim;
  return count;
}

/// "[4, 128]", as users read it.
inline std::string toString(std::span<const int64_t> shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i)
    text += (i ? ", " : "") + std::to_string(shape[i]);
  return text + "]";
}

} // namespace ds
