//===- matmul_epilogue_cuda.h - what matmul does where cuBLASLt does not --===//
#pragma once

#include "kernels/matmul/matmul_call.h"
#include "kernels/matmul/matmul_cuda_plan.h"

#include <cuda_runtime_api.h>

namespace ds::kernels::cuda {

/// Applies bias and epilogue to the finished product, which stands in `product` (c, or aux for gelu_tanh).
struct MatmulEpilogueArguments {
  MatmulEpilogue epilogue;
  DType dtype;        ///< of c and aux
  DType biasType;     ///< of bias
  int64_t rows, cols; ///< of c, all batches
  void *product;
  const void *bias; ///< or null
  void *aux, *c;    ///< aux: null where the call has none
};
void enqueueMatmulEpilogue(const MatmulEpilogueArguments &arguments, cudaStream_t stream);

/// The product itself, for shapes that cuBLASLt has no algorithm for.
void enqueuePlainProduct(const MatmulPlan &plan, const MatmulPlan::Start &start, DType from, DType to, const void *a,
                         const void *b, void *c, cudaStream_t stream);

} // namespace ds::kernels::cuda
