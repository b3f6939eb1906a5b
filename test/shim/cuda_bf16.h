//===- cuda_bf16.h - CUDA's bfloat16, on a host ---------------------------===//
#pragma once

#include "kernels/BFloat16.h"

#include <cstdint>

struct __nv_bfloat16 {
  ds::BFloat16 value;
};

inline float __bfloat162float(__nv_bfloat16 x) { return float(x.value); }
inline __nv_bfloat16 __float2bfloat16_rn(float x) { return {ds::BFloat16(x)}; }
