//===- DeviceSum.cu - sumInRankOrder on a GPU -----------------------------===//
#include "runtime/comm/cuda/DeviceSum.h"

#include "core/DType.h"
#include "kernels/BFloat16.h"
#include "kernels/Float16.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cuda_runtime.h>
#include <span>

namespace ds::runtime {
namespace {

constexpr uint32_t blockThreads = 256;
constexpr uint64_t maxBlocks = 4096; // a few waves of any GPU; the rest is the loop's

struct Addends {
  const void *at[maxAddends];
};

/// A thread reads element i of everything before it writes it, so the target may be one of the addends. Sums are of
/// type S, and rounded once.
template <typename T, typename S>
__global__ void sumInOrder(Addends addends, uint32_t n, T *target, uint64_t count, bool accumulate) {
  const uint64_t stride = uint64_t(gridDim.x) * blockThreads;
  for (uint64_t i = uint64_t(blockIdx.x) * blockThreads + threadIdx.x; i < count; i += stride) {
    S sum = S(accumulate ? target[i] : static_cast<const T *>(addends.at[0])[i]);
    for (uint32_t k = accumulate ? 0 : 1; k < n; ++k)
      sum += S(static_cast<const T *>(addends.at[k])[i]);
    target[i] = T(sum);
  }
}

template <typename T, typename S = T>
cudaError_t launch(const Addends &addends, uint32_t n, std::byte *target, uint64_t count, bool accumulate,
                   cudaStream_t stream) noexcept {
  const auto blocks = uint32_t(std::min(maxBlocks, (count + blockThreads - 1) / blockThreads));
  auto *out = reinterpret_cast<T *>(target);
#ifdef __CUDACC__
  sumInOrder<T, S><<<blocks, blockThreads, 0, stream>>>(addends, n, out, count, accumulate);
#else // test/shim
  shim::launch<sumInOrder<T, S>>(blocks, blockThreads, stream, addends, n, out, count, accumulate);
#endif
  return cudaGetLastError();
}

} // namespace

cudaError_t sumOnDevice(DType dtype, std::span<const std::byte *const> addends, std::byte *target, uint64_t count,
                        bool accumulate, cudaStream_t stream) noexcept {
  if (count == 0 || addends.empty())
    return cudaSuccess;
  if (addends.size() > maxAddends)
    return cudaErrorInvalidValue;
  Addends arguments{};
  std::copy(addends.begin(), addends.end(), arguments.at);
  const auto n = uint32_t(addends.size());
  if (dtype == DType::F32)
    return launch<float>(arguments, n, target, count, accumulate, stream);
  if (dtype == DType::F64)
    return launch<double>(arguments, n, target, count, accumulate, stream);
  if (dtype == DType::BF16)
    return launch<BFloat16, float>(arguments, n, target, count, accumulate, stream);
  if (dtype == DType::F16)
    return launch<Float16, float>(arguments, n, target, count, accumulate, stream);
  if (dtype == DType::I64)
    return launch<uint64_t>(arguments, n, target, count, accumulate, stream); // as int64, but an overflow wraps
  return cudaErrorInvalidValue;
}

} // namespace ds::runtime
