//===- search_call.h - the calls of arg_max, top_k and cumsum ------------===//
#pragma once

#include "kernels/Call.h"
#include "kernels/HostDevice.h"

#include <cstdint>

namespace ds::kernels {

/// Whether `a` stands before `b` in descending order; NaN is the largest.
template <typename T> DS_HOST_DEVICE bool isLarger(T a, T b) { return a > b || (a != a && b == b); }
/// In ascending order; NaN is the largest.
template <typename T> DS_HOST_DEVICE bool isSmaller(T a, T b) { return a < b || (b != b && a == a); }

/// x [outer, length, inner], y i64 [outer, inner].
struct ArgMaxCall {
  explicit ArgMaxCall(const Call &call);
  AxisView x;
  DType dtype;
  bool last; ///< of equal ones
};

/// x [rows, length], values and i64 indices [rows, k].
struct TopKCall {
  explicit TopKCall(const Call &call);
  int64_t rows = 0, length = 0, k = 0;
  DType dtype;
  bool smallest;

  /// Whether element a of a row comes before element b.
  template <typename T> DS_HOST_DEVICE bool before(const T *row, int64_t a, int64_t b) const {
    const bool first = smallest ? isSmaller(row[a], row[b]) : isLarger(row[a], row[b]);
    const bool second = smallest ? isSmaller(row[b], row[a]) : isLarger(row[b], row[a]);
    return first || (!second && a < b);
  }
};

/// x and y [outer, length, inner].
struct CumSumCall {
  explicit CumSumCall(const Call &call);
  AxisView x;
  DType dtype;
  bool exclusive, reverse;
};

} // namespace ds::kernels
