//===- plain_attention.h - our own attention -----------------------------===//
//
// For float32 and float64, which cuDNN's fused attention does not take, and for calls that it refuses.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "kernels/attention/attention_call.h"

#include <cuda_runtime_api.h>

namespace ds::kernels::cuda {

struct PlainOperands {
  const void *q, *k, *v, *mask; ///< mask may be null
  void *out, *lse;
};
void enqueuePlainAttention(const AttentionCall &call, const PlainOperands &operands, cudaStream_t stream);

struct PlainGradOperands {
  const void *dout, *q, *k, *v, *mask, *out, *lse;
  void *dq, *dk, *dv;
  void *workspace; ///< two numbers of the sum type per query
};
void enqueuePlainAttentionGrad(const AttentionCall &call, const PlainGradOperands &operands, cudaStream_t stream);

} // namespace ds::kernels::cuda
