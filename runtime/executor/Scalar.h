//===- Scalar.h - one number in the dtype it was computed in --------------===//
#pragma once

#include "core/DType.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

namespace ds::runtime {

/// A metric's value. Every float32 and float64 is a double exactly; an int64 keeps its own field.
struct Scalar {
  DType dtype = DType::F64;
  double number = 0;
  int64_t integer = 0;

  double asDouble() const { return dtype == DType::I64 ? double(integer) : number; }
  bool isFinite() const { return dtype == DType::I64 || std::isfinite(number); }

  static Scalar fromBytes(DType dtype, const std::byte *bytes) {
    Scalar scalar{.dtype = dtype};
    if (dtype == DType::F32) {
      float value;
      std::memcpy(&value, bytes, sizeof value);
      scalar.number = value;
    } else if (dtype == DType::F64) {
      std::memcpy(&scalar.number, bytes, sizeof scalar.number);
    } else {
      std::memcpy(&scalar.integer, bytes, sizeof scalar.integer);
    }
    return scalar;
  }

  /// The shortest text that reads back bit-equal in the dtype; NaN and Infinity as Python's json writes them. Returns
  /// the end; `text` needs 32 bytes.
  char *format(std::span<char> text) const {
    char *const begin = text.data(), *const end = begin + text.size();
    if (dtype == DType::I64)
      return std::to_chars(begin, end, integer).ptr;
    if (!std::isfinite(number)) {
      const std::string_view word = std::isnan(number) ? "NaN" : number < 0 ? "-Infinity" : "Infinity";
      return std::copy(word.begin(), word.end(), begin);
    }
    return dtype == DType::F32 ? std::to_chars(begin, end, float(number)).ptr : std::to_chars(begin, end, number).ptr;
  }
};

} // namespace ds::runtime
