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

/// Says where c and the operands around it stand.
void MatmulCall::readEpilogue(const Call &call) {
  const std::string name = call.has("epilogue") ? call.text("epilogue") : "";
  call.require(name.empty() || name == "gelu_tanh" || name == "gelu_tanh_grad",
               "attribute 'epilogue' must be \"\", gelu_tanh or gelu_tanh_grad, not '" + name + "'");
  epilogue = name.empty()          ? MatmulEpilogue::None
             : name == "gelu_tanh" ? MatmulEpilogue::GeluTanh
                                   : MatmulEpilogue::GeluTanhGrad;
  const bool grad = epilogue == MatmulEpilogue::GeluTanhGrad, sums = call.has("dbias") && call.flag("dbias");
  call.require(!grad || !bias, "epilogue gelu_tanh_grad takes no bias");
  call.require(grad || !sums, "attribute 'dbias' needs epilogue gelu_tanh_grad");
  c = bias || grad ? 3 : 2;
  aux = epilogue == MatmulEpilogue::None ? 0 : grad ? 2 : c + 1;
  dbias = sums ? c + 1 : 0;
}

void MatmulCall::checkEpilogue(const Call &call) const {
  if (aux)
    call.expectLike(aux, c);
  if (dbias) {
    call.expectDType(dbias, dtype);
    call.expectShape(dbias, {n});
  }
}

MatmulCall::MatmulCall(const Call &call) {
  transA = call.flag("trans_a");
  transB = call.flag("trans_b");
  bias = call.flag("bias");
  pieces = call.integer("pieces");
  call.require(pieces >= 1 && pieces <= matmulMaxPieces, "attribute pieces is " + std::to_string(pieces) +
                                                             ", but 1 to " + std::to_string(matmulMaxPieces) +
                                                             " is allowed");
  tf32 = call.has("tf32") && call.flag("tf32");
  readEpilogue(call);
  call.expectOperands(std::max({c, aux, dbias}) + 1);
  call.expectFloat(0);
  dtype = call.dtype(0);
  call.expectDType(1, dtype);
  call.expectDType(c, dtype);
  const Shape &a = call.shape(0), &b = call.shape(1);
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
  checkEpilogue(call);
  if (bias) {
    call.expectDType(2, dtype);
    call.expectShape(2, {n});
  }
  batches = elementCount(batch);
  aBatchStrides = batchStrides(a, batch);
  bBatchStrides = batchStrides(b, batch);
}

} // namespace ds::kernels
