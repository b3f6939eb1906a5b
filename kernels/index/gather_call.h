//===- gather_call.h - the calls of gather and gather_grad ---------------===//
#pragma once

#include "kernels/Call.h"

#include <cstdint>
#include <string_view>

namespace ds::kernels {

/// data [outer, length, inner], indices [count], taken [outer, count, inner].
struct GatherCall {
  /// `data`, `indices`, `taken`: the operands' numbers.
  GatherCall(const Call &call, size_t data, size_t indices, size_t taken);

  AxisView data;
  int64_t count;
  DType indexType;

  /// Row of data that index k names.
  int64_t row(const void *indices, int64_t k) const {
    const int64_t index = indexAt(indices, indexType, k);
    return index < 0 ? index + data.length : index;
  }
  /// Whether all indices lie in [-length, length).
  Status check(const char *kernel, const void *indices) const noexcept;
};

} // namespace ds::kernels
