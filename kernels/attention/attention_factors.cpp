// What splitting attention does. Keys are whole, since a query's probabilities add up to 1, also where a gradient
// computes them again; so is the depth, since a score is no sum of results. Heads are cut by group; within a group by
// head, then keys and values are the same in each part and their gradients are summed.
#include "kernels/Call.h"
#include "kernels/Factors.h"

namespace ds::kernels {

void attentionFactors(FactorWriter &to) {
  const Call &call = to.call;
  const bool bshd = call.flag("bshd"), isGradient = call.hasOperand("dout");
  const Shape &q = call.shape("q"), &k = call.shape("k"), &v = call.shape("v");
  const int64_t heads = q[bshd ? 2 : 1], groups = k[bshd ? 2 : 1];
  // `causal` compares places of queries and keys, which a part would count from 0.
  const FactorKind summed = isGradient ? FactorKind::Sum : FactorKind::Pass;
  const FactorKind ofQueries = call.flag("causal") ? FactorKind::Whole : summed;
  const size_t batch = to.factor(q[0]), group = to.factor(groups), inGroup = to.factor(heads / groups, summed);
  const size_t queries = to.factor(q[bshd ? 1 : 2], ofQueries), keys = to.factor(k[bshd ? 1 : 2], FactorKind::Whole);
  const size_t depth = to.factor(q[3], FactorKind::Whole), columns = to.factor(v[3], summed);
  const auto tensor = [&](const Dimension &head, size_t row, size_t width) {
    return bshd ? Dimensions{{batch}, {row}, head, {width}} : Dimensions{{batch}, head, {row}, {width}};
  };
  const Dimension all = {group, inGroup};
  for (const char *name : {"q", "dq"})
    if (call.hasOperand(name))
      to.set(name, tensor(all, queries, depth));
  for (const char *name : {"out", "dout"})
    if (call.hasOperand(name))
      to.set(name, tensor(all, queries, columns));
  for (const char *name : {"k", "dk"})
    if (call.hasOperand(name))
      to.set(name, tensor({group}, keys, depth));
  for (const char *name : {"v", "dv"})
    if (call.hasOperand(name))
      to.set(name, tensor({group}, keys, columns));
  to.set("lse", {{batch}, all, {queries}});
  if (call.hasOperand("mask"))
    to.set("mask", {{batch}, all, {queries}, {keys}});
}

/// Rows are queries and keys. Of heads that share no keys, qkv has the three of each at one place of three runs.
void packedAttentionFactors(FactorWriter &to) {
  const Call &call = to.call;
  const Shape &qkv = call.shape("qkv");
  const int64_t heads = call.shape("out")[2];
  const bool isPlain = qkv[2] == 3 * heads;
  const Dimension batch = {to.factor(qkv[0])}, rows = {to.factor(qkv[1], FactorKind::Whole)};
  const Dimension head = {to.factor(heads, isPlain ? FactorKind::Pass : FactorKind::Whole)};
  Dimension packed = {to.factor(isPlain ? 3 : qkv[2], FactorKind::Whole)};
  if (isPlain)
    packed.push_back(head[0]);
  const Dimension depth = {to.factor(qkv[3], FactorKind::Whole)};
  for (const char *name : {"qkv", "dqkv"})
    if (call.hasOperand(name))
      to.set(name, {batch, rows, packed, depth});
  for (const char *name : {"out", "dout"})
    if (call.hasOperand(name))
      to.set(name, {batch, rows, head, depth});
  to.set("lse", {batch, head, rows});
  if (call.hasOperand("mask"))
    to.set("mask", {batch, head, rows, rows});
}

} // namespace ds::kernels
