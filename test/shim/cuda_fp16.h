//===- cuda_fp16.h - CUDA's float16, on a host -----------------------------===//
#pragma once

#include "kernels/Float16.h"

struct __half {
  ds::Float16 value;
};

inline float __half2float(__half x) { return float(x.value); }
inline __half __float2half_rn(float x) { return {ds::Float16(x)}; }
