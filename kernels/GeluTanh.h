//===- GeluTanh.h - GELU's approximation by tanh, and its derivative ------===//
//
// Hendrycks and Gimpel, 2016. torch.nn.functional.gelu(approximate="tanh"), and what cuBLASLt's epilogues compute.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "kernels/HostDevice.h"

#include <cmath>

namespace ds::kernels {

template <typename T> DS_HOST_DEVICE T geluTanhOf(T x) {
  const T inner = T(0.7978845608028654) * (x + T(0.044715) * x * x * x); // sqrt(2 / pi)
  return T(0.5) * x * (T(1) + std::tanh(inner));
}

template <typename T> DS_HOST_DEVICE T geluTanhSlopeOf(T x) {
  const T t = std::tanh(T(0.7978845608028654) * (x + T(0.044715) * x * x * x));
  const T slope = T(0.7978845608028654) * (T(1) + T(0.134145) * x * x);
  return T(0.5) * (T(1) + t) + T(0.5) * x * (T(1) - t * t) * slope;
}

} // namespace ds::kernels
