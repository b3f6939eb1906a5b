//===- Number.cuh - element types on the GPU ------------------------------===//
#pragma once

#include "kernels/Numbers.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cmath>
#include <cstdint>
#include <type_traits>

namespace ds::kernels::cuda {

/// Whether a type of the GPU has 16 bits, and no arithmetic that we use.
template <typename T> inline constexpr bool isHalf = std::is_same_v<T, __nv_bfloat16> || std::is_same_v<T, __half>;

/// Calls f(T{}) with the GPU's type of a float of 16 bits.
template <typename F> decltype(auto) withHalf(DType dtype, F &&f) {
  return dtype == DType::BF16 ? f(__nv_bfloat16{}) : f(__half{});
}

/// Calls f(T{}) with the GPU's type of a float dtype.
template <typename F> decltype(auto) withFloat(DType dtype, F &&f) {
  if (dtype == DType::F32)
    return f(float{});
  if (dtype == DType::F64)
    return f(double{});
  return withHalf(dtype, f);
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

/// What arithmetic on T is done in, and the type of statistics: float32 for floats of 16 bits.
template <typename T> using Sum = std::conditional_t<isHalf<T>, float, T>;

/// An element for arithmetic.
template <typename T> __host__ __device__ Sum<T> wide(T x) {
  if constexpr (std::is_same_v<T, __nv_bfloat16>)
    return __bfloat162float(x);
  else if constexpr (std::is_same_v<T, __half>)
    return __half2float(x);
  else
    return x;
}

/// A number as an element, rounded to nearest even.
template <typename T, typename From> __host__ __device__ T narrow(From x) {
  if constexpr (std::is_same_v<T, __nv_bfloat16>)
    return __float2bfloat16_rn(float(x));
  else if constexpr (std::is_same_v<T, __half>)
    return __float2half_rn(float(x));
  else
    return T(x);
}

/// Calls f(T{}, G{}) with the types of a tensor and of sums of it: T itself, or float32 where T has 16 bits.
template <typename F> decltype(auto) withSums(DType dtype, DType ofSums, F &&f) {
  return withFloat(dtype, [&](auto zero) {
    using T = decltype(zero);
    if (ofSums == dtype)
      return f(zero, zero);
    return f(zero, Sum<T>{});
  });
}

/// Calls f(T{}, G{}) with the types of a parameter, float32 or float64, and of its gradient, which may have 16 bits.
template <typename F> decltype(auto) withGradient(DType parameter, DType gradient, F &&f) {
  const auto with = [&](auto zero) {
    return isNarrowFloat(gradient) ? withHalf(gradient, [&](auto narrow) { return f(zero, narrow); }) : f(zero, zero);
  };
  return parameter == DType::F64 ? with(double{}) : with(float{});
}

/// `count` elements that are loaded and stored at once; their address is a multiple of their size.
template <typename T, int count> struct alignas(sizeof(T) * count) Pack {
  T values[count];
};

/// Elements that fill 16 bytes.
template <typename T> inline constexpr int packOf = int(16 / sizeof(T));

} // namespace ds::kernels::cuda
