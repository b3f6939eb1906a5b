//===- linear_weight_grad_call.h - the call of linear_weight_grad ---------===//
//
// It is a product, and sums of one operand's columns: each of the two is a call of a kernel of its own.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "kernels/Call.h"

#include <cstdint>

namespace ds::kernels {

/// dw = x^T dy [M, N] or dy^T x [N, M], and db = sum of dy's rows [N].
struct LinearWeightGradCall {
  explicit LinearWeightGradCall(const Call &call);

  /// Its operands.
  enum : size_t { dy, x, dw, db };

  bool transposed;
  int64_t rows, columns; ///< of dy
  CallWorkspace workspace;
  Invocation product; ///< matmul of a, b, dw and the workspace, which may use all of it
  Invocation sums;    ///< reduce_sum of dy, db and the workspace

  size_t a() const { return transposed ? dy : x; }
  size_t b() const { return transposed ? x : dy; }
};

} // namespace ds::kernels
