//===- block_sum_squares.h - the call of block_sum_squares ----------------===//
#pragma once

#include "kernels/cpu/Call.h"

namespace ds::kernels {

/// Elements of one partial sum, counted from the start of the tensor.
inline constexpr int64_t sumSquaresBlock = 1024;

struct BlockSumSquaresCall {
  explicit BlockSumSquaresCall(const Call &call) {
    call.expectOperands(2);
    call.expectFloat(0);
    elements = call.elements(0);
    dtype = call.dtype(0);
    call.expectDType(1, DType::F64);
    call.expectShape(1, {piecesOf(elements, sumSquaresBlock)});
  }

  int64_t elements = 0;
  DType dtype = DType::F32;
};

} // namespace ds::kernels
