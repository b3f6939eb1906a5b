//===- block_sum_squares_call.h - the call of block_sum_squares ----------===//
#pragma once

#include "kernels/Call.h"

namespace ds::kernels {

/// Elements of the largest partial sum, and of those that all are made of: counted from the start of the tensor.
inline constexpr int64_t sumSquaresBlock = 1024, sumSquaresLeaf = 64;

/// Whether partial sums may be of that many elements.
constexpr bool isSumSquaresBlock(int64_t block) {
  return block >= sumSquaresLeaf && block <= sumSquaresBlock && (block & (block - 1)) == 0;
}

/// Adds `count` sums, a power of two, to one: neighbours first.
inline double addPairwise(const double *sums, int64_t count) {
  return count == 1 ? sums[0] : addPairwise(sums, count / 2) + addPairwise(sums + count / 2, count / 2);
}

struct BlockSumSquaresCall {
  explicit BlockSumSquaresCall(const Call &call) {
    elements = call.elements("g");
    dtype = call.dtype();
    block = call.integer("block");
    call.require(isSumSquaresBlock(block), "'block' must be a power of two from 64 to 1024");
    call.expectShape("partials", {piecesOf(elements, block)});
  }

  int64_t elements = 0, block = sumSquaresBlock;
  DType dtype = DType::F32;
};

} // namespace ds::kernels
