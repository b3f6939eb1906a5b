//===- SumBytes.h - bytes of sums and statistics on CUDA -----------------===//
#pragma once

#include "core/DType.h"

namespace ds::kernels {

/// Bytes of a sum or a statistic of a call on `dtype`: 16 bits are summed in float32.
constexpr int64_t cudaSumBytes(DType dtype) { return dtype == DType::F64 ? 8 : 4; }

} // namespace ds::kernels
