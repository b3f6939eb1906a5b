#include "kernels/matmul/matmul_cuda_plan.h"

#include <algorithm>

namespace ds::kernels::cuda {

namespace {

/// A leading dimension of c, and the matrices of a, b and c from one index to the next.
struct BatchDimension {
  int64_t size, a, b, c;
};

/// Without those of size 1; neighbours that all operands walk as one are one.
std::vector<BatchDimension> mergedBatch(const MatmulCall &call) {
  std::vector<BatchDimension> merged;
  int64_t stride = call.batches;
  for (size_t d = 0; d < call.batch.size(); ++d) {
    const int64_t size = call.batch[d];
    stride = size == 0 ? 0 : stride / size;
    if (size == 1)
      continue;
    const BatchDimension own{size, call.aBatchStrides[d], call.bBatchStrides[d], stride};
    const bool follows = !merged.empty() && merged.back().a == own.a * size && merged.back().b == own.b * size;
    if (follows)
      merged.back() = {merged.back().size * size, own.a, own.b, own.c};
    else
      merged.push_back(own);
  }
  return merged;
}

} // namespace

MatmulPlan::MatmulPlan(const MatmulCall &call)
    : m(call.m), n(call.n), k(call.k), transposeFirst(call.transB), transposeSecond(call.transA) {
  std::vector<BatchDimension> batch = mergedBatch(call);
  // One b for all batches, and rows of a that follow each other: a single product of more rows.
  if (!call.transA && batch.size() == 1 && batch[0].a == 1 && batch[0].b == 0) {
    m *= batch[0].size;
    batch.clear();
  }
  first = call.transB ? ColumnMajor{k, n, k} : ColumnMajor{n, k, n};
  second = call.transA ? ColumnMajor{m, k, m} : ColumnMajor{k, m, k};
  result = {n, m, n};
  for (ColumnMajor *matrix : {&first, &second, &result})
    matrix->leading = std::max<int64_t>(matrix->leading, 1);
  if (m == 0 || n == 0 || call.batches == 0)
    return;
  launches.push_back({0, 0, 0});
  if (batch.empty())
    return;
  const BatchDimension inner = batch.back();
  batch.pop_back();
  batches = inner.size;
  first.stride = inner.b * k * n;
  second.stride = inner.a * m * k;
  result.stride = inner.c * m * n;
  for (const BatchDimension &outer : batch) {
    std::vector<Start> more;
    for (const Start &start : launches)
      for (int64_t i = 0; i < outer.size; ++i)
        more.push_back({start.a + i * outer.a * m * k, start.b + i * outer.b * k * n, start.c + i * outer.c * m * n});
    launches = std::move(more);
  }
}

} // namespace ds::kernels::cuda
