//===- conv_cuda_plan.h - a convolution as cuDNN sees it -----------------===//
#pragma once

#include "kernels/conv/conv_call.h"

#include <cstdint>
#include <string_view>
#include <vector>

namespace ds::kernels::cuda {

enum class ConvKind { Forward, InputGrad, WeightGrad };

/// Dimensions and row-major strides of one of cuDNN's tensors.
struct ConvTensor {
  std::vector<int64_t> dims, strides;
  DType dtype = DType::F32;
};

/// cuDNN knows two and three spatial dimensions: one is seen as two, of which the first is 1.
struct ConvPlan {
  ConvPlan(ConvKind kind, const ConvCall &call, DType ofWeights);

  ConvKind kind;
  ConvTensor x, w, y;
  std::vector<int64_t> strides, dilations, before, after; ///< after: padding behind x, which its sizes only imply
  bool empty = false;                                     ///< something has no elements
};

} // namespace ds::kernels::cuda
