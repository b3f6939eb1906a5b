//===- matmul_cuda_plan.h - a product as cuBLASLt sees it ----------------===//
//
// cuBLASLt thinks in columns: our row-major c [m, n] is its c^T [n, m] = op(b)^T op(a)^T, so b is its first matrix and
// a its second, and a bias of n elements is one of its rows. Plain C++, tested on the host.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "kernels/matmul/matmul_call.h"

#include <cstdint>
#include <vector>

namespace ds::kernels::cuda {

/// A matrix in memory by columns; `stride` elements to the next of a batch, 0 where it is used again.
struct ColumnMajor {
  int64_t rows = 0, cols = 0, leading = 1, stride = 0;
};

struct MatmulPlan {
  explicit MatmulPlan(const MatmulCall &call);

  int64_t m, n, k;                   ///< of one matrix, m with the batches that were folded into it
  ColumnMajor first, second, result; ///< b, a and c
  bool transposeFirst, transposeSecond;
  int64_t batches = 1; ///< of one launch, at equal strides
  struct Start {
    int64_t a, b, c; ///< elements
  };
  std::vector<Start> launches; ///< none where c is empty

  /// All rows of c, of all batches.
  int64_t rows() const { return m * batches * int64_t(launches.size()); }
};

} // namespace ds::kernels::cuda
