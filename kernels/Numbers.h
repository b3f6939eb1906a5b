//===- Numbers.h - one element of any dtype -------------------------------===//
#pragma once

#include "core/DType.h"
#include "kernels/BFloat16.h"
#include "kernels/Float16.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace ds::kernels {

/// Calls f(T{}) with the C++ type of `dtype`, or floats() where that is a float. A bool is a uint8_t that holds 0 or 1.
template <typename F, typename Floats> decltype(auto) withType(DType dtype, F &&f, Floats &&floats) {
  switch (dtype) {
  case DType::Bool:
  case DType::U8:
    return f(uint8_t{});
  case DType::U16:
    return f(uint16_t{});
  case DType::U32:
    return f(uint32_t{});
  case DType::I32:
    return f(int32_t{});
  case DType::I64:
    return f(int64_t{});
  case DType::F32:
  case DType::F64:
  case DType::BF16:
  case DType::F16:
    break;
  }
  return floats();
}

/// The same where no float has 16 bits: who meets one widens it first.
template <typename F> decltype(auto) withType(DType dtype, F &&f) {
  return withType(dtype, f, [&] { return dtype == DType::F32 ? f(float{}) : f(double{}); });
}

/// Calls f(T{}) with the C++ type of a float of 16 bits.
template <typename F> decltype(auto) withNarrowFloat(DType dtype, F &&f) {
  return dtype == DType::BF16 ? f(BFloat16{}) : f(Float16{});
}

/// A float as an integer: truncated. PyTorch leaves NaN and what does not fit undefined; here int32 and int64 get their
/// lowest value (what x86 gives), and the narrower types the low bits of the int64.
template <typename To, typename From> To truncated(From x) {
  if constexpr (std::is_same_v<To, int32_t>)
    return x > From(-2147483649.0) && x < From(2147483648.0) ? int32_t(x) : INT32_MIN;
  else
    return To(x >= From(-9223372036854775808.0) && x < From(9223372036854775808.0) ? int64_t(x) : INT64_MIN);
}

/// `value` as one element of type `dtype` at `to`.
inline void storeDouble(void *to, DType dtype, double value) {
  if (isNarrowFloat(dtype))
    return withNarrowFloat(dtype, [&](auto zero) {
      const decltype(zero) element{float(value)};
      std::memcpy(to, &element, sizeof element);
    });
  withType(dtype, [&](auto zero) {
    using T = decltype(zero);
    T element;
    if constexpr (std::is_floating_point_v<T>)
      element = T(value);
    else
      element = dtype == DType::Bool ? T(value != 0) : truncated<T>(value);
    std::memcpy(to, &element, sizeof(T));
  });
}

} // namespace ds::kernels
