//===- DeviceSum.h - sumInRankOrder on a GPU ------------------------------===//
#pragma once

#include "core/DType.h"

#include <cstddef>
#include <cstdint>
#include <cuda_runtime_api.h>
#include <span>

namespace ds::runtime {

/// Most addends of one sum, which is most ranks of one process: their addresses are arguments of the launch.
inline constexpr size_t maxAddends = 256;

/// Enqueues sumInRankOrder (SumInRankOrder.h): the same order and, as each addition is rounded by itself, the same
/// bits. All addresses can be read by the GPU of the stream, which is the current one.
cudaError_t sumOnDevice(DType dtype, std::span<const std::byte *const> addends, std::byte *target, uint64_t count,
                        bool accumulate, cudaStream_t stream) noexcept;

} // namespace ds::runtime
