//===- norm_row.cuh - a row of a norm, read once --------------------------===//
#pragma once

#include "kernels/cuda/Launch.cuh"
#include "kernels/cuda/Packs.cuh"

#include <algorithm>
#include <type_traits>

namespace ds::kernels::cuda {

/// Most threads of a block, and packs that a thread of layer_norm or rms_norm keeps in registers: the compiler keeps a
/// pack of bfloat16 as 8 float32.
inline constexpr int normRowThreads = 512, keptPacks = 4;

/// A sum of its own, never the end of a fused multiplication.
__device__ inline float roundedSum(float a, float b) { return __fadd_rn(a, b); }
__device__ inline double roundedSum(double a, double b) { return __dadd_rn(a, b); }

/// The packs of a row that one thread works on: the one of its number, and every blockDim.x-th behind it. With `kept`
/// they are read once and stay in registers, else each walk reads them again, from the first-level cache. With `added`
/// they are those of the sum of two rows. It is stored in `rounded`, where later walks read it, and in 16 bits in `sum`
/// before it is rounded.
template <typename T, int width, int kept> class NormRow {
public:
  __device__ NormRow(const T *row, int64_t cols, const Sum<T> *added = nullptr, Sum<T> *sum = nullptr,
                     T *rounded = nullptr)
      : row_(added == nullptr ? row : rounded), packs_(cols / width) {
    if (kept == 0 && added != nullptr)
      for (int64_t pack = threadIdx.x; pack < packs_; pack += int64_t(blockDim.x))
        first(row, added, sum, rounded, pack);
#pragma unroll
    for (int k = 0; k < kept; ++k)
      if (const int64_t pack = threadIdx.x + int64_t(k) * blockDim.x; pack < packs_)
        own_[k] = first(row, added, sum, rounded, pack);
  }

  /// visit(pack, its elements), in ascending order.
  template <typename Visit> __device__ void forEach(Visit visit) const {
    if constexpr (kept == 0)
      for (int64_t pack = threadIdx.x; pack < packs_; pack += blockDim.x)
        visit(pack, packAt<width>(row_, pack));
    else
#pragma unroll
      for (int k = 0; k < kept; ++k)
        if (const int64_t pack = threadIdx.x + int64_t(k) * blockDim.x; pack < packs_)
          visit(pack, own_[k]);
  }

  /// visit(pack, its elements, those of `other`), in ascending order.
  template <typename Visit> __device__ void forEachWith(const NormRow &other, Visit visit) const {
    if constexpr (kept == 0)
      forEach([&](int64_t pack, const Pack<T, width> &own) { visit(pack, own, packAt<width>(other.row_, pack)); });
    else
#pragma unroll
      for (int k = 0; k < kept; ++k)
        if (const int64_t pack = threadIdx.x + int64_t(k) * blockDim.x; pack < packs_)
          visit(pack, own_[k], other.own_[k]);
  }

private:
  __device__ static Pack<T, width> first(const T *row, const Sum<T> *added, Sum<T> *sum, T *rounded, int64_t pack) {
    Pack<T, width> values = packAt<width>(row, pack);
    if (added == nullptr)
      return values;
    auto sums = packAt<width>(added, pack);
    for (int j = 0; j < width; ++j) {
      sums.values[j] = roundedSum(wide(values.values[j]), sums.values[j]);
      values.values[j] = narrow<T>(sums.values[j]);
    }
    if (sum != nullptr)
      storePack(sum, pack, sums);
    storePack(rounded, pack, values);
    return values;
  }

  const T *row_;
  int64_t packs_;
  Pack<T, width> own_[kept > 0 ? kept : 1];
};

/// To a pack of a gradient, which is rounded already, the same pack of a row of the residual's, if that is not null.
template <typename T, int width> __device__ void addResidual(Pack<T, width> &dxs, const T *row, int64_t pack) {
  if (row == nullptr)
    return;
  const auto added = packAt<width>(row, pack);
  for (int j = 0; j < width; ++j)
    dxs.values[j] = narrow<T>(roundedSum(wide(dxs.values[j]), wide(added.values[j])));
}

/// run(width, kept, threads of a block) for rows of `cols` elements; the two first are integral_constants.
template <typename T, typename Run> void withNormRow(bool packed, int64_t cols, Run run) {
  const auto again = std::integral_constant<int, 0>{};
  const auto pack = std::integral_constant<int, packOf<T>>{};
  const int64_t work = packed ? cols / packOf<T> : cols;
  const unsigned threads = std::min<unsigned>(rowThreads(work, keptPacks), normRowThreads);
  if (!packed)
    return run(std::integral_constant<int, 1>{}, again, threads);
  if (work <= int64_t(threads) * keptPacks)
    return run(pack, std::integral_constant<int, keptPacks>{}, threads);
  run(pack, again, threads);
}

} // namespace ds::kernels::cuda
