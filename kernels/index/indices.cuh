//===- indices.cuh - indices that a kernel reads and may refuse ----------===//
#pragma once

#include "kernels/cuda/Launch.h"
#include "kernels/cuda/Refuse.cuh"

namespace ds::kernels::cuda {

/// int32 or int64 indices; negative ones count from the end.
struct Indices {
  const void *data;
  bool narrow; ///< int32
  int64_t count;
  Refuser refuse;

  Indices(const void *data, DType type, int64_t count, const CallContext &context)
      : data(data), narrow(type == DType::I32), count(count), refuse(context) {}

  __device__ int64_t at(int64_t k) const {
    return narrow ? int64_t(static_cast<const int32_t *>(data)[k]) : static_cast<const int64_t *>(data)[k];
  }
  /// The row of `length` that index k names, or -1, and the index is refused.
  __device__ int64_t row(int64_t k, int64_t length) const {
    const int64_t index = at(k), row = index < 0 ? index + length : index;
    if (row >= 0 && row < length)
      return row;
    refuse(index);
    return -1;
  }
};

inline Refusal indexRefusal(const char *kernel, int64_t length) {
  return [kernel, length](int64_t index) {
    return Status::failure("kernel '%s': index %lld is out of range [%lld, %lld)", kernel,
                           static_cast<long long>(index), static_cast<long long>(-length),
                           static_cast<long long>(length));
  };
}

} // namespace ds::kernels::cuda
