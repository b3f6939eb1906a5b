#include "kernels/matmul/matmul_call.h"

#include <algorithm>

namespace ds::kernels {

namespace {

/// Leading dimension d (of `rank` leading ones) of an operand, 1 where it has none.
int64_t leading(const Shape &shape, size_t rank, size_t d) {
  const size_t own = shape.size() - 2;
  return d + own < rank ? 1 : shape[d + own - rank];
}

/// Strides over the matrices of an operand, 0 where it is broadcast to `batch`.
Shape batchStrides(const Shape &shape, const Shape &batch) {
  Shape strides(batch.size());
  int64_t stride = 1;
  for (size_t d = batch.size(); d-- > 0;) {
    const int64_t size = leading(shape, batch.size(), d);
    strides[d] = size == 1 ? 0 : stride;
    stride *= size;
  }
  return strides;
}

} // namespace

void MatmulCall::readEpilogue(const Call &call) {
  const std::string &name = call.text("epilogue");
  epilogue = name.empty()          ? MatmulEpilogue::None
             : name == "gelu_tanh" ? MatmulEpilogue::GeluTanh
                                   : MatmulEpilogue::GeluTanhGrad;
  call.require(epilogue != MatmulEpilogue::GeluTanhGrad || !bias, "epilogue gelu_tanh_grad takes no bias");
  c = call["c"];
  aux = call.hasOperand("aux") ? call["aux"] : 0;
}

MatmulCall::MatmulCall(const Call &call) {
  transA = call.flag("trans_a");
  transB = call.flag("trans_b");
  bias = call.flag("bias");
  pieces = call.integer("pieces");
  call.require(pieces >= 1 && pieces <= matmulMaxPieces, "attribute pieces is " + std::to_string(pieces) +
                                                             ", but 1 to " + std::to_string(matmulMaxPieces) +
                                                             " is allowed");
  tf32 = call.flag("tf32");
  algorithm = call.algorithm();
  workspace = call.workspace();
  readEpilogue(call);
  dtype = call.dtype();
  const Shape &a = call.shape("a"), &b = call.shape("b");
  call.require(a.size() >= 2 && b.size() >= 2,
               "a " + toString(a) + " and b " + toString(b) + " must have at least two dimensions");
  m = a[a.size() - (transA ? 1 : 2)];
  k = a[a.size() - (transA ? 2 : 1)];
  n = b[b.size() - (transB ? 2 : 1)];
  const int64_t bRows = b[b.size() - (transB ? 1 : 2)];
  call.require(k == bRows, "op(a) has " + std::to_string(k) + " columns and op(b) " + std::to_string(bRows) +
                               " rows; a is " + toString(a) + ", b " + toString(b));
  const size_t rank = std::max(a.size(), b.size()) - 2;
  for (size_t d = 0; d < rank; ++d) {
    const int64_t fromA = leading(a, rank, d), fromB = leading(b, rank, d);
    call.require(fromA == fromB || fromA == 1 || fromB == 1,
                 "leading dimensions of a " + toString(a) + " and b " + toString(b) + " do not broadcast");
    batch.push_back(fromA == 1 ? fromB : fromA);
  }
  Shape expected = batch;
  expected.push_back(m);
  expected.push_back(n);
  call.expectShape(c, expected);
  if (aux)
    call.expectShape(aux, expected);
  if (bias)
    call.expectShape("bias", {n});
  batches = elementCount(batch);
  aBatchStrides = batchStrides(a, batch);
  bBatchStrides = batchStrides(b, batch);
}

} // namespace ds::kernels
