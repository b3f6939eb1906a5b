//===- SumInRankOrder.cpp - the one order of a sum over ranks -------------===//
//
// A tile of the sum at a time stays in the nearest cache while the ranks' elements stream past it: every addend is read
// once, the target is written once, and it may overlap an addend since a tile is read before it is written.
//
//===----------------------------------------------------------------------===//
#include "runtime/comm/SumInRankOrder.h"

#include "core/DType.h"
#include "kernels/BFloat16.h"
#include "kernels/Float16.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace ds::runtime {
namespace {

template <typename T> constexpr uint64_t tileElements = 4096 / sizeof(T);

template <typename T>
void sumTile(std::span<const std::byte *const> addends, std::byte *target, uint64_t first, uint64_t count,
             bool accumulate) noexcept {
  T sum[tileElements<T>];
  std::memcpy(sum, (accumulate ? target : addends[0]) + first * sizeof(T), count * sizeof(T));
  for (size_t k = accumulate ? 0 : 1; k < addends.size(); ++k) {
    const T *addend = reinterpret_cast<const T *>(addends[k]) + first;
    for (uint64_t i = 0; i < count; ++i)
      sum[i] += addend[i];
  }
  std::memcpy(target + first * sizeof(T), sum, count * sizeof(T));
}

/// Of 16 bits: summed in float32, and rounded once.
template <typename T>
void sumNarrowTile(std::span<const std::byte *const> addends, std::byte *target, uint64_t first, uint64_t count,
                   bool accumulate) noexcept {
  float sum[tileElements<float>];
  const T *begin = reinterpret_cast<const T *>(accumulate ? target : addends[0]) + first;
  std::copy_n(begin, count, sum);
  for (size_t k = accumulate ? 0 : 1; k < addends.size(); ++k) {
    const T *addend = reinterpret_cast<const T *>(addends[k]) + first;
    for (uint64_t i = 0; i < count; ++i)
      sum[i] += float(addend[i]);
  }
  for (uint64_t i = 0; i < count; ++i)
    reinterpret_cast<T *>(target)[first + i] = T(sum[i]);
}

template <typename T>
void sumNarrow(std::span<const std::byte *const> addends, std::byte *target, uint64_t count, bool accumulate) noexcept {
  for (uint64_t first = 0; first < count; first += tileElements<float>)
    sumNarrowTile<T>(addends, target, first, std::min(tileElements<float>, count - first), accumulate);
}

template <typename T>
void sumAll(std::span<const std::byte *const> addends, std::byte *target, uint64_t count, bool accumulate) noexcept {
  for (uint64_t first = 0; first < count; first += tileElements<T>)
    sumTile<T>(addends, target, first, std::min(tileElements<T>, count - first), accumulate);
}

} // namespace

void sumInRankOrder(DType dtype, std::span<const std::byte *const> addends, std::byte *target, uint64_t count,
                    bool accumulate) noexcept {
  if (dtype == DType::F32)
    sumAll<float>(addends, target, count, accumulate);
  else if (dtype == DType::F64)
    sumAll<double>(addends, target, count, accumulate);
  else if (dtype == DType::BF16)
    sumNarrow<BFloat16>(addends, target, count, accumulate);
  else if (dtype == DType::F16)
    sumNarrow<Float16>(addends, target, count, accumulate);
  else
    sumAll<uint64_t>(addends, target, count, accumulate); // as int64, but an overflow wraps
}

} // namespace ds::runtime
