#include "kernels/attention/attention_call.h"

namespace ds::kernels {

/// Of `count` heads and `length` rows of `width` in a tensor of their own: [batch, count, length, width], or with
/// `bshd` [batch, length, count, width].
static HeadStrides stridesOf(bool bshd, int64_t count, int64_t length, int64_t width) {
  const int64_t batch = count * length * width;
  return bshd ? HeadStrides{batch, width, count * width} : HeadStrides{batch, length * width, width};
}

AttentionCall::AttentionCall(const Call &call) {
  scale = call.number("scale");
  causal = call.flag("causal");
  masked = call.flag("mask");
  next = call["out"];
  count_ = call.operandCount();
  workspace = call.workspace();
  dtype = call.dtype();
  if (call.hasOperand("qkv"))
    readPacked(call);
  else
    readApart(call);
  call.require(groups > 0 && heads % groups == 0,
               std::to_string(heads) + " heads are not a multiple of " + std::to_string(groups) + " groups");
  if (masked)
    readMask(call);
}

void AttentionCall::readApart(const Call &call) {
  const Shape &shape = call.shape("q"), &keyShape = call.shape("k");
  const bool bshd = call.flag("bshd");
  const size_t head = bshd ? 2 : 1, row = bshd ? 1 : 2;
  batch = shape[0], heads = shape[head], queries = shape[row], depth = shape[3];
  groups = keyShape[head], keys = keyShape[row], columns = call.shape("v")[3];
  call.require(call.shape("lse") == Shape{batch, heads, queries},
               "lse " + toString(call.shape("lse")) + " is not [batch, heads, queries] of q " + toString(shape));
  q = stridesOf(bshd, heads, queries, depth), out = stridesOf(bshd, heads, queries, columns);
  k = stridesOf(bshd, groups, keys, depth), v = stridesOf(bshd, groups, keys, columns);
}

void AttentionCall::readPacked(const Call &call) {
  const Shape &shape = call.shape("qkv");
  batch = shape[0], queries = keys = shape[1], depth = columns = shape[3];
  heads = call.shape("out")[2], groups = (shape[2] - heads) / 2;
  call.require(shape[2] == heads + 2 * groups, "qkv " + toString(shape) +
                                                   " is not [batch, rows, heads + 2 * groups, depth] of " +
                                                   std::to_string(heads) + " heads");
  q = k = v = stridesOf(true, shape[2], queries, depth);
  out = stridesOf(true, heads, queries, depth);
  next += 2;
  qkv_ = call["qkv"];
  if (call.hasOperand("dqkv"))
    dqkv_ = call["dqkv"];
  if (elementCount(shape) > 0) { // else there may be no address to count from
    const int64_t bytesOfHead = depth * byteSize(dtype);
    parts_ = {0, heads * bytesOfHead, (heads + groups) * bytesOfHead};
  }
}

AttentionOperands AttentionCall::apart(std::span<void *const> operands) const {
  AttentionOperands result;
  for (size_t i = 0; i < count_; ++i)
    if (i == qkv_ || i == dqkv_)
      for (int64_t part : parts_)
        result.add(static_cast<char *>(operands[i]) + part);
    else
      result.add(operands[i]);
  return result;
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
