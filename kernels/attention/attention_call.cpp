#include "kernels/attention/attention_call.h"

namespace ds::kernels {

AttentionCall::AttentionCall(const Call &call) {
  scale = call.number("scale");
  causal = call.flag("causal");
  masked = call.flag("mask");
  bshd = call.flag("bshd");
  next = call["out"];
  workspace = call.workspace();
  dtype = call.dtype();
  const Shape &q = call.shape("q"), &k = call.shape("k"), &v = call.shape("v");
  const size_t head = bshd ? 2 : 1, row = bshd ? 1 : 2;
  batch = q[0], heads = q[head], queries = q[row], depth = q[3];
  groups = k[head], keys = k[row], columns = v[3];
  call.require(call.shape("lse") == Shape{batch, heads, queries},
               "lse " + toString(call.shape("lse")) + " is not [batch, heads, queries] of q " + toString(q));
  call.require(groups > 0 && heads % groups == 0,
               std::to_string(heads) + " heads are not a multiple of " + std::to_string(groups) + " groups");
  if (masked)
    readMask(call);
}

void AttentionCall::readMask(const Call &call) {
  const Shape &mask = call.shape("mask"), scores = {batch, heads, queries, keys};
  boolMask = call.dtype("mask") == DType::Bool;
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

} // namespace ds::kernels
