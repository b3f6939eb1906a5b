//===- movement_call.h - the calls of kernels that only move elements ----===//
//
// transpose, slice, pad, concat: any dtype, by element size alone.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "kernels/Call.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace ds::kernels {

/// y[i0, i1, ...] = x[...] with dimension d of y being dimension perm[d] of x.
struct TransposeCall {
  explicit TransposeCall(const Call &call);
  Shape x, y;
  std::vector<int64_t> perm;
  int64_t elementBytes;
};

/// y[i] = x[starts + i * steps].
struct SliceCall {
  explicit SliceCall(const Call &call);
  Shape x, y;
  std::vector<int64_t> starts, steps;
  int64_t elementBytes;
};

/// y = value, except y[low + i * spacing] = x[i].
struct PadCall {
  explicit PadCall(const Call &call);
  Shape x, y;
  std::vector<int64_t> low, spacing;
  std::array<std::byte, 8> value{}; ///< the first elementBytes are the padding element
  int64_t elementBytes;
};

/// Inputs [outer, inner_k] side by side in y [outer, sum of inner_k].
struct ConcatCall {
  explicit ConcatCall(const Call &call);
  int64_t outer = 1;
  std::vector<int64_t> inner; ///< bytes of one row of each input
  int64_t innerTotal = 0;     ///< bytes of one row of y
};

} // namespace ds::kernels
