//===- Number.cuh - element types on the GPU ------------------------------===//
#pragma once

#include "kernels/Numbers.h"

#include <cuda_bf16.h>

#include <cmath>
#include <cstdint>
#include <type_traits>

namespace ds::kernels::cuda {

/// Calls f(T{}) with the GPU's type of a float dtype.
template <typename F> decltype(auto) withFloat(DType dtype, F &&f) {
  if (dtype == DType::F32)
    return f(float{});
  if (dtype == DType::BF16)
    return f(__nv_bfloat16{});
  return f(double{});
}

/// Calls f(T{}) with the GPU's type of any dtype; a bool is a uint8_t that holds 0 or 1.
template <typename F> decltype(auto) withNumber(DType dtype, F &&f) {
  return withType(dtype, f, [&] { return withFloat(dtype, f); });
}

/// Calls f(T{}) with an unsigned integer of `bytes` bytes, to move elements of any type.
template <typename F> decltype(auto) withBytes(int64_t bytes, F &&f) {
  switch (bytes) {
  case 1:
    return f(uint8_t{});
  case 2:
    return f(uint16_t{});
  case 4:
    return f(uint32_t{});
  case 8:
    return f(uint64_t{});
  default:
    return f(uint4{});
  }
}

/// What arithmetic on T is done in, and the type of statistics: float32 for bfloat16.
template <typename T> struct SumOf {
  using Type = T;
};
template <> struct SumOf<__nv_bfloat16> {
  using Type = float;
};
template <typename T> using Sum = typename SumOf<T>::Type;

/// An element for arithmetic.
template <typename T> __host__ __device__ Sum<T> wide(T x) {
  if constexpr (std::is_same_v<T, __nv_bfloat16>)
    return __bfloat162float(x);
  else
    return x;
}

/// A number as an element, rounded to nearest even.
template <typename T, typename From> __host__ __device__ T narrow(From x) {
  if constexpr (std::is_same_v<T, __nv_bfloat16>)
    return __float2bfloat16_rn(float(x));
  else
    return T(x);
}

/// Calls f(T{}, G{}) with the types of a tensor and of sums of it: T itself, or float32 where T is bfloat16.
template <typename F> decltype(auto) withSums(DType dtype, DType ofSums, F &&f) {
  return withFloat(dtype, [&](auto zero) {
    using T = decltype(zero);
    if (ofSums == dtype)
      return f(zero, zero);
    return f(zero, Sum<T>{});
  });
}

/// `count` elements that are loaded and stored at once; their address is a multiple of their size.
template <typename T, int count> struct alignas(sizeof(T) * count) Pack {
  T values[count];
};

/// Elements that fill 16 bytes.
template <typename T> inline constexpr int packOf = int(16 / sizeof(T));

} // namespace ds::kernels::cuda
