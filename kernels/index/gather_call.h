//===- gather_call.h - the calls of gather and gather_grad ---------------===//
#pragma once

#include "kernels/Call.h"

#include <cstdint>
#include <string_view>

namespace ds::kernels {

/// data [outer, length, inner], indices [count], taken [outer, count, inner].
struct GatherCall {
  /// The names of the operands `data` and `taken`; the third is "indices".
  GatherCall(const Call &call, std::string_view data, std::string_view taken);

  AxisView data;
  int64_t count;
  DType indexType;
  int64_t whole, first; ///< rows of the table that data is a part of, and which of them is data's first

  /// Row of data that index k names; outside of [0, length) where another part has it.
  int64_t row(const void *indices, int64_t k) const {
    const int64_t index = indexAt(indices, indexType, k);
    return (index < 0 ? index + whole : index) - first;
  }
  bool has(int64_t row) const { return row >= 0 && row < data.length; }
  /// Whether all indices lie in [-whole, whole).
  Status check(const char *kernel, const void *indices) const noexcept;
};

} // namespace ds::kernels
