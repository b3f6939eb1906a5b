#include "kernels/attention/attention_call.h"

namespace ds::kernels {

AttentionCall::AttentionCall(const Call &call, size_t first) {
  scale = call.number("scale");
  causal = call.flag("causal");
  masked = call.flag("mask");
  next = first + 3 + size_t(masked);
  call.expectFloat(first);
  dtype = call.dtype(first);
  const Shape &q = call.shape(first), &k = call.shape(first + 1), &v = call.shape(first + 2);
  call.require(q.size() == 4 && k.size() == 4 && v.size() == 4,
               "q " + toString(q) + ", k " + toString(k) + " and v " + toString(v) + " must have four dimensions");
  batch = q[0], heads = q[1], queries = q[2], depth = q[3];
  groups = k[1], keys = k[2], columns = v[3];
  call.expectDType(first + 1, dtype);
  call.expectDType(first + 2, dtype);
  call.expectShape(first + 1, {batch, groups, keys, depth});
  call.expectShape(first + 2, {batch, groups, keys, columns});
  call.require(groups > 0 && heads % groups == 0,
               std::to_string(heads) + " heads are not a multiple of " + std::to_string(groups) + " groups");
  if (!masked)
    return;
  const Shape &mask = call.shape(first + 3), scores = {batch, heads, queries, keys};
  boolMask = call.dtype(first + 3) == DType::Bool;
  if (!boolMask)
    call.expectDType(first + 3, dtype);
  call.require(mask.size() <= 4, "mask " + toString(mask) + " has more than four dimensions");
  int64_t stride = 1;
  for (size_t d = mask.size(); d-- > 0;) {
    const size_t dim = d + 4 - mask.size();
    call.require(mask[d] == 1 || mask[d] == scores[dim],
                 "mask " + toString(mask) + " does not broadcast to " + toString(scores));
    maskStrides[dim] = mask[d] == 1 ? 0 : stride;
    stride *= mask[d];
  }
}

/// Operands out and lse.
static void checkResults(const Call &call, const AttentionCall &parsed, size_t out) {
  call.expectDType(out, parsed.dtype);
  call.expectShape(out, {parsed.batch, parsed.heads, parsed.queries, parsed.columns});
  call.expectDType(out + 1, parsed.dtype);
  call.expectShape(out + 1, {parsed.batch, parsed.heads, parsed.queries});
}

AttentionCall attentionCall(const Call &call) {
  call.expectOperands(call.flag("mask") ? 6 : 5);
  const AttentionCall parsed(call, 0);
  checkResults(call, parsed, parsed.next);
  return parsed;
}

AttentionCall attentionGradCall(const Call &call) {
  call.expectOperands(call.flag("mask") ? 10 : 9);
  const AttentionCall parsed(call, 1);
  checkResults(call, parsed, parsed.next);
  call.expectLike(0, parsed.next);
  for (size_t i = 0; i < 3; ++i)
    call.expectLike(parsed.next + 2 + i, 1 + i);
  return parsed;
}

} // namespace ds::kernels
