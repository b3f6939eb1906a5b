//===- strided_copy.h - copies an index space between two layouts --------===//
#pragma once

#include "kernels/KernelRegistry.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace ds::kernels {

/// to[sum of i_d * toStrides_d] = from[sum of i_d * fromStrides_d] for all indices i within `sizes`; strides in
/// elements, positive. Every fast movement kernel is one of these.
class StridedCopy {
public:
  struct Dimension {
    int64_t size, from, to;
  };

  /// Merges and orders the dimensions; `dimensions` may hold any sizes, 0 included.
  StridedCopy(std::vector<Dimension> dimensions, int64_t elementBytes);

  void run(const CallContext &context, const std::byte *from, std::byte *to) const noexcept;

private:
  struct Offsets {
    int64_t from, to;
  };

  void merge();
  Offsets offsetsOf(int64_t row) const;
  void copyRows(const std::byte *from, std::byte *to, int64_t first, int64_t count) const;

  std::vector<Dimension> outer_; ///< iterated by rows
  /// Each row is a block [across, along]: along the inner dimension of `to`; across is 1 unless a transposition is due.
  Dimension across_{1, 1, 1}, along_{1, 1, 1};
  int64_t elementBytes_;
  int64_t rows_ = 1;         ///< product of the outer sizes
  int64_t rowsPerPiece_ = 1; ///< by the size of a row alone
};

} // namespace ds::kernels
