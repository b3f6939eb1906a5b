//===- element_index_call.h - the index space of gather and scatter by element --===//
#pragma once

#include "kernels/Call.h"

#include <cstdint>

namespace ds::kernels {

/// Data and indices of one rank seen as columns along `axis`: column c of the indices meets one column of the data, and
/// no other column of the indices meets the same elements.
class ElementIndex {
public:
  /// Of the operands "data" and "indices".
  explicit ElementIndex(const Call &call);

  int64_t columns() const { return columns_; }
  int64_t length() const { return length_; }

  /// Where a column begins, in elements.
  struct Column {
    int64_t data, indices;
  };
  Column column(int64_t c) const;
  /// The element of `data` that index j of a column names; the index has been checked.
  int64_t dataAt(const Column &column, const void *indices, int64_t j) const {
    const int64_t index = indexAt(indices, type_, indicesAt(column, j));
    return column.data + (index < 0 ? index + dataLength_ : index) * dataStride_;
  }
  int64_t indicesAt(const Column &column, int64_t j) const { return column.indices + j * indexStride_; }

  /// Whether all indices lie in [-n, n), n the length of the data's axis.
  Status check(const char *kernel, const void *indices) const noexcept;

private:
  Shape shape_; ///< of the indices, 1 at the axis
  std::array<int64_t, maxRank> dataStrides_, indexStrides_;
  int64_t columns_ = 1, length_ = 0, elements_ = 0; ///< of the indices
  int64_t dataLength_ = 0, dataStride_ = 1, indexStride_ = 1;
  DType type_;
};

} // namespace ds::kernels
