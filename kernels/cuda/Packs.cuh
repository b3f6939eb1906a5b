//===- Packs.cuh - rows that are moved 16 bytes at once -------------------===//
//
// Kernels that wait for memory move `width` elements at once: packOf<T> where rows and addresses are multiples of 16
// bytes, else 1. The host decides it at a launch, by shapes and addresses, which are a plan's own: in each of its runs
// the width, and with it the order of sums, is the same.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "kernels/cuda/Number.cuh"

#include <initializer_list>

namespace ds::kernels::cuda {

/// Whether a row of `length` elements of T may be moved 16 bytes at once, and so may what lies at the addresses.
template <typename T> bool inPacks(int64_t length, std::initializer_list<const void *> addresses) {
  uintptr_t bits = 0;
  for (const void *address : addresses)
    bits |= reinterpret_cast<uintptr_t>(address);
  return length % packOf<T> == 0 && bits % 16 == 0;
}

/// Elements [pack * width, (pack + 1) * width) of x, in loads of at most 16 bytes: a pack of 16 bits goes with two of
/// float32.
template <int width, typename T> __device__ Pack<T, width> packAt(const T *x, int64_t pack) {
  constexpr int part = width < packOf<T> ? width : packOf<T>, parts = width / part;
  Pack<T, width> all;
#pragma unroll
  for (int k = 0; k < parts; ++k) {
    const auto some = reinterpret_cast<const Pack<T, part> *>(x)[pack * parts + k];
#pragma unroll
    for (int j = 0; j < part; ++j)
      all.values[k * part + j] = some.values[j];
  }
  return all;
}

/// Stores at most 16 bytes.
template <typename T, int width> __device__ void storePack(T *x, int64_t pack, const Pack<T, width> &values) {
  reinterpret_cast<Pack<T, width> *>(x)[pack] = values;
}

} // namespace ds::kernels::cuda
