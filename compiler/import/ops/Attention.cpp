//===- Attention.cpp - Attention, RotaryEmbedding ---------------------------------------------===//
//
// Both come in as what they are made of: ds-regroup-attention finds the whole again, as it does in files of exporters
// that know neither, and a softcap or a trained mask needs no op of its own.
#include "compiler/import/Fold.h"
#include "compiler/import/ops/Emit.h"
#include "compiler/import/ops/Ops.h"

#include <cmath>
#include <limits>

namespace ds::import::ops {

static Value times(Node &node, const Value &a, const Value &b) {
  return binary<train::MulOp>(node, BinaryFold::Mul, a, b);
}

static Value timesNumber(Node &node, const Value &a, double by) { return times(node, a, floatScalar(a.dtype, by)); }

/// [batch, length, heads * size] as [batch, heads, length, size]; four dimensions stay as they are.
static Value byHeads(Node &node, const Value &value, const char *attribute) {
  if (value.rank() == 4)
    return value;
  if (value.rank() != 3)
    throw Failure("an operand of shape " + toString(value.shape) + " must have three or four dimensions");
  const int64_t heads = node.integerAttr(attribute, 0);
  if (heads < 1 || value.shape[2] % heads != 0)
    throw Failure("needs attribute " + std::string(attribute) + " that divides the last dimension of " +
                  toString(value.shape) + ", not " + std::to_string(heads));
  const Shape split = {value.shape[0], value.shape[1], heads, value.shape[2] / heads};
  return transpose(node, reshape(node, value, split), {0, 2, 1, 3});
}

/// Key or value heads, each repeated for the query heads that share it.
static Value repeated(Node &node, const Value &value, int64_t heads) {
  const Shape &shape = value.shape;
  if (shape[1] < 1 || heads % shape[1] != 0)
    throw Failure(std::to_string(heads) + " query heads are not a multiple of " + std::to_string(shape[1]) +
                  " key and value heads");
  if (shape[1] == heads)
    return value;
  const Value thin = reshape(node, value, {shape[0], shape[1], 1, shape[2], shape[3]});
  const Value wide = broadcastTo(node, thin, {shape[0], shape[1], heads / shape[1], shape[2], shape[3]});
  return reshape(node, wide, {shape[0], heads, shape[2], shape[3]});
}

/// Hides scores: the later keys, what a mask of bools says, or by adding a mask of floats.
static Value masked(Node &node, Value scores) {
  const Value hidden = floatScalar(scores.dtype, -std::numeric_limits<double>::infinity());
  const int64_t queries = scores.shape[2], keys = scores.shape[3];
  if (node.has(3)) {
    const Value mask = node.in(3);
    if (mask.rank() > 4 || broadcastShape(mask.shape, scores.shape) != scores.shape)
      throw Failure("the mask of shape " + toString(mask.shape) + " does not broadcast to the scores " +
                    toString(scores.shape));
    scores = mask.dtype == DType::Bool ? select(node, mask, scores, hidden)
                                       : binary<train::AddOp>(node, BinaryFold::Add, scores, mask);
  }
  if (node.integerAttr("is_causal", 0) == 0)
    return scores;
  return select(node, Value::of(triangle(queries, keys, 0, false, node.budget())), scores, hidden);
}

static void refuseCaches(Node &node) {
  for (size_t input : {size_t(4), size_t(5), size_t(6)})
    if (node.has(input))
      throw Failure("a cache of past keys and values is for inference; export with use_cache=False");
  for (size_t output : {size_t(1), size_t(2), size_t(3)})
    if (node.wants(output))
      throw Failure("only its first output is available in training; output " + std::to_string(output) + " is read");
  for (const char *window : {"left_window_size", "right_window_size"})
    if (node.integerAttr(window, -1) >= 0)
      throw Failure(std::string(window) + " is not available yet; give the window as attn_mask");
}

/// softmax(softcap(scale q k^T) + mask) v; a query whose keys are all hidden yields zeros.
void attention(Node &node) {
  refuseCaches(node);
  const bool flat = node.floatIn(0).rank() == 3;
  const Value q = byHeads(node, node.floatIn(0), "q_num_heads");
  const Value keys = byHeads(node, node.floatIn(1), "kv_num_heads");
  const Value values = byHeads(node, node.floatIn(2), "kv_num_heads");
  const Value k = repeated(node, keys, q.shape[1]), v = repeated(node, values, q.shape[1]);
  if (k.shape[0] != q.shape[0] || k.shape[3] != q.shape[3] || v.shape[0] != q.shape[0] || v.shape[2] != k.shape[2])
    throw Failure("the operands " + toString(q.shape) + ", " + toString(keys.shape) + " and " + toString(values.shape) +
                  " do not fit each other");
  const double scale = node.floatAttr("scale", 1 / std::sqrt(double(q.shape[3])));
  const double cap = node.floatAttr("softcap", 0);
  const mlir::NamedAttribute transposed = node.builder().getNamedAttr("trans_b", node.builder().getUnitAttr());
  const mlir::Value left = node.operand(q), right = node.operand(k);
  Value scores = Value::of(node.create<train::MatmulOp>({left, right}, {transposed}).getResult());
  scores = timesNumber(node, scores, scale);
  if (cap > 0)
    scores = timesNumber(node, unary<train::TanhOp>(node, UnaryFold::Tanh, timesNumber(node, scores, 1 / cap)), cap);
  scores = masked(node, scores);
  auto softmax = node.create<train::SoftmaxOp>({node.operand(scores)}, {node.number("axis", 3)});
  auto nan = node.create<train::IsNanOp>({softmax.getResult()});
  const Value weights =
      select(node, Value::of(nan.getResult()), floatScalar(q.dtype, 0), Value::of(softmax.getResult()));
  const mlir::Value seen = node.operand(weights), columns = node.operand(v);
  const Value out = Value::of(node.create<train::MatmulOp>({seen, columns}).getResult());
  if (!flat)
    return node.set(0, out);
  const Shape merged = {q.shape[0], q.shape[2], q.shape[1] * v.shape[3]};
  node.set(0, reshape(node, transpose(node, out, {0, 2, 1, 3}), merged));
}

static Value joined(Node &node, const std::vector<Value> &parts, int64_t axis) {
  llvm::SmallVector<mlir::Value> operands;
  for (const Value &part : parts)
    operands.push_back(node.operand(part));
  return Value::of(node.create<train::ConcatOp>(operands, {node.number("axis", axis)}).getResult());
}

/// cos or sin as [batch or 1, 1, length, half]: with position_ids rows of a table, without them one row a position.
static Value rotation(Node &node, size_t input, const Shape &x, int64_t half) {
  Value table = node.floatIn(input);
  if (node.has(3))
    table = gatherAlong(node, table, node.in(3), 0);
  if (table.rank() != 3 || table.shape.back() != half || table.shape[1] != x[2] ||
      (table.shape[0] != 1 && table.shape[0] != x[0]))
    throw Failure("input " + std::to_string(input) + " yields rotations of shape " + toString(table.shape) + "; [" +
                  std::to_string(x[0]) + ", " + std::to_string(x[2]) + ", " + std::to_string(half) + "] are needed");
  return reshape(node, table, {table.shape[0], 1, table.shape[1], half});
}

/// Pairs of elements turned by an angle: halves of a head, or neighbours where interleaved. Su et al. 2021.
void rotaryEmbedding(Node &node) {
  const bool flat = node.floatIn(0).rank() == 3;
  const Value x = byHeads(node, node.floatIn(0), "num_heads");
  const int64_t size = x.shape[3], asked = node.integerAttr("rotary_embedding_dim", 0), turned = asked ? asked : size;
  if (turned < 2 || turned % 2 != 0 || turned > size)
    throw Failure("rotary_embedding_dim " + std::to_string(turned) + " must be even and at most the head's " +
                  std::to_string(size));
  const int64_t half = turned / 2;
  const Value cos = rotation(node, 1, x.shape, half), sin = rotation(node, 2, x.shape, half);
  const bool interleaved = node.integerAttr("interleaved", 0) != 0;
  const Shape pairs = {x.shape[0], x.shape[1], x.shape[2], half, 2},
              single = {x.shape[0], x.shape[1], x.shape[2], half};
  const Value front = sliceAlong(node, x, 3, 0, turned);
  const Value split = interleaved ? reshape(node, front, pairs) : front;
  const size_t axis = interleaved ? 4 : 3;
  const int64_t width = interleaved ? 1 : half;
  const Value a = reshape(node, sliceAlong(node, split, axis, 0, width), single);
  const Value b = reshape(node, sliceAlong(node, split, axis, width, width), single);
  const Value ac = times(node, cos, a), bs = times(node, sin, b), as = times(node, sin, a), bc = times(node, cos, b);
  const Value real = binary<train::SubOp>(node, BinaryFold::Sub, ac, bs);
  const Value imaginary = binary<train::AddOp>(node, BinaryFold::Add, as, bc);
  Value result;
  if (interleaved) {
    const Shape last = {x.shape[0], x.shape[1], x.shape[2], half, 1};
    result = joined(node, {reshape(node, real, last), reshape(node, imaginary, last)}, 4);
    result = reshape(node, result, front.shape);
  } else {
    result = joined(node, {real, imaginary}, 3);
  }
  if (turned < size)
    result = joined(node, {result, sliceAlong(node, x, 3, turned, size - turned)}, 3);
  node.set(0, flat ? reshape(node, transpose(node, result, {0, 2, 1, 3}), node.in(0).shape) : result);
}

} // namespace ds::import::ops
