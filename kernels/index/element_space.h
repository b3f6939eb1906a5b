//===- element_space.h - gather and scatter by element, for a launch ------===//
#pragma once

#include "kernels/Call.h"
#include "kernels/HostDevice.h"

namespace ds::kernels::cuda {

/// The indices' space and where its elements meet the data's; column c goes along the axis. Passed by value.
struct ElementSpace {
  ElementSpace(const Shape &data, const Shape &indices, size_t axis) : dimensions(int(indices.size())) {
    const auto ofData = rowMajorStrides(data), ofIndices = rowMajorStrides(indices);
    for (size_t d = 0; d < indices.size(); ++d) {
      sizes[d] = d == axis ? 1 : indices[d];
      dataStrides[d] = ofData[d];
      indexStrides[d] = ofIndices[d];
      columns *= sizes[d];
    }
    length = indices[axis];
    dataLength = data[axis];
    dataStride = ofData[axis];
    indexStride = ofIndices[axis];
    if (length == 0)
      columns = 0;
  }

  struct Column {
    int64_t data, indices; ///< where it begins
  };
  DS_HOST_DEVICE Column column(int64_t c) const {
    Column result{0, 0};
    for (int d = dimensions - 1; d >= 0; --d) {
      const int64_t i = c % sizes[d];
      c /= sizes[d];
      result.data += i * dataStrides[d];
      result.indices += i * indexStrides[d];
    }
    return result;
  }

  int dimensions;
  int64_t sizes[maxRank], dataStrides[maxRank], indexStrides[maxRank];
  int64_t columns = 1, length = 0, dataLength = 0, dataStride = 1, indexStride = 1;
};

} // namespace ds::kernels::cuda
