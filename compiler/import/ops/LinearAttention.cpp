//===- LinearAttention.cpp - LinearAttention, CausalConvWithState ---------------------------------------===//
//
// Linear attention keeps a matrix for each head, to which each step adds the product of its key and value, and which
// its query reads. The steps are unrolled as those of an LSTM are. Katharopoulos et al., "Transformers are RNNs", 2020;
// the delta rules: Yang et al., "Gated delta networks", 2024.
//
//===----------------------------------------------------------------------===//
#include "compiler/import/ops/Algebra.h"
#include "compiler/import/ops/Ops.h"

#include <cmath>

namespace ds::import::ops {
namespace {

/// What a LinearAttention node says. Each value has its steps first: [steps, batch, heads of keys, ...].
struct Recall {
  int64_t steps = 0, batch = 0, heads = 0, group = 0, keySize = 0, valueSize = 0; // group: queries of a head of keys
  std::optional<Value> decay;                                                     // [.., key size or 1, 1], its exp
  std::optional<Value> rate;                                                      // [.., 1, 1], of one head or all
  Value query;                                                                    // [.., group, key size], scaled
  Value key;                                                                      // [.., 1, key size]
  Value value;                                                                    // [.., 1, value size]
};

/// Input i, [batch, steps, heads * rest], as [steps, batch, heads, rest...].
Value stepsFirst(Node &node, size_t i, int64_t heads, const Shape &rest) {
  const Value given = node.floatIn(i);
  Shape split{given.shape[0], given.shape[1], heads};
  split.insert(split.end(), rest.begin(), rest.end());
  return transpose(node, reshape(node, given, split), {1, 0, 2, 3, 4});
}

/// The size of a head in input i, which must be [batch, steps, heads * size].
int64_t headSize(Node &node, const char *what, size_t i, int64_t heads) {
  const Shape &shape = node.floatIn(i).shape, &first = node.floatIn(0).shape;
  if (shape.size() != 3 || shape[0] != first[0] || shape[1] != first[1] || shape[2] < heads || shape[2] % heads != 0)
    throw Failure("the " + std::string(what) + " " + toString(shape) + " must be [batch, steps, " +
                  std::to_string(heads) + " heads * size], with batch and steps of the queries " + toString(first));
  return shape[2] / heads;
}

/// Whether the node has input i, which its rule must have or must not have.
bool hasGate(Node &node, size_t i, const char *what, const std::string &rule, bool needed) {
  if (node.has(i) != needed)
    throw Failure("the update rule '" + rule + "' " + (needed ? "needs" : "takes no") + " input '" + what + "'");
  return needed;
}

Recall readRecall(Node &node) {
  Recall r;
  const std::string rule = node.stringAttr("update_rule", "gated_delta");
  if (rule != "linear" && rule != "gated" && rule != "delta" && rule != "gated_delta")
    throw Failure("update_rule '" + rule + "' is none of linear, gated, delta, gated_delta");
  const int64_t queries = node.integerAttr("q_num_heads", 0);
  r.heads = node.integerAttr("kv_num_heads", 0);
  if (r.heads < 1 || queries < 1 || queries % r.heads != 0)
    throw Failure("q_num_heads " + std::to_string(queries) + " must be a multiple of kv_num_heads " +
                  std::to_string(r.heads));
  r.group = queries / r.heads;
  r.keySize = headSize(node, "queries", 0, queries);
  r.valueSize = headSize(node, "values", 2, r.heads);
  if (headSize(node, "keys", 1, r.heads) != r.keySize)
    throw Failure("a head of the keys has " + std::to_string(headSize(node, "keys", 1, r.heads)) +
                  " elements, and one of the queries " + std::to_string(r.keySize));
  r.batch = node.floatIn(0).shape[0], r.steps = node.floatIn(0).shape[1];
  if (r.steps < 1)
    throw Failure("needs a step or more");
  const Algebra math(node);
  const double scale = node.floatAttr("scale", 0);
  r.query = math.mul(stepsFirst(node, 0, r.heads, {r.group, r.keySize}),
                     scale == 0 ? 1 / std::sqrt(double(r.keySize)) : scale);
  r.key = stepsFirst(node, 1, r.heads, {1, r.keySize});
  r.value = stepsFirst(node, 2, r.heads, {1, r.valueSize});
  if (hasGate(node, 4, "decay", rule, rule.starts_with("gated"))) {
    const int64_t size = headSize(node, "decay", 4, r.heads);
    if (size != 1 && size != r.keySize)
      throw Failure("the decay has " + std::to_string(size) + " elements a head and must have 1 or " +
                    std::to_string(r.keySize));
    r.decay = math.exp(stepsFirst(node, 4, r.heads, {size, 1}));
  }
  if (hasGate(node, 5, "beta", rule, rule.ends_with("delta"))) {
    const int64_t heads = node.floatIn(5).shape.size() == 3 && node.floatIn(5).shape[2] == 1 ? 1 : r.heads;
    if (headSize(node, "beta", 5, heads) != 1)
      throw Failure("beta " + toString(node.floatIn(5).shape) + " must have one element a head or one");
    r.rate = stepsFirst(node, 5, heads, {1, 1});
  }
  return r;
}

/// Step t of a value whose steps come first.
Value at(Node &node, const Value &all, int64_t t) {
  return reshape(node, sliceAlong(node, all, 0, t, 1), Shape(all.shape.begin() + 1, all.shape.end()));
}

Value product(Node &node, const Value &x, const Value &y) {
  return Value::of(node.create<train::MatmulOp>({node.operand(x), node.operand(y)}).getResult());
}

/// The first state, float32 where the node computes with 16 bits.
Value firstState(Node &node, const Recall &r) {
  const Shape shape{r.batch, r.heads, r.keySize, r.valueSize};
  if (!node.has(3))
    return broadcastTo(node, floatScalar(r.key.dtype, 0), shape);
  if (node.floatIn(3).shape != shape)
    throw Failure("the past state " + toString(node.in(3).shape) + " must be " + toString(shape));
  return cast(node, node.in(3), r.key.dtype);
}

} // namespace

/// S = decay * S + k^T (rate * (v - k decay * S)), o = scale * q S; without a rule's gates they are not there.
void linearAttention(Node &node) {
  const Algebra math(node);
  const Recall r = readRecall(node);
  Value state = firstState(node, r);
  std::vector<Value> outputs;
  for (int64_t t = 0; t < r.steps; ++t) {
    const Value key = at(node, r.key, t);
    Value added = at(node, r.value, t);
    if (r.decay)
      state = math.mul(state, at(node, *r.decay, t));
    if (r.rate)
      added = math.mul(math.sub(added, product(node, key, state)), at(node, *r.rate, t));
    state = math.add(state, math.mul(reshape(node, key, {r.batch, r.heads, r.keySize, 1}), added));
    if (node.wants(0))
      outputs.push_back(
          reshape(node, product(node, at(node, r.query, t), state), {1, r.batch, r.heads, r.group, r.valueSize}));
  }
  if (node.wants(0)) {
    const Value batchFirst = transpose(node, join(node, outputs, 0), {1, 0, 2, 3, 4});
    node.set(0, reshape(node, batchFirst, {r.batch, r.steps, r.heads * r.group * r.valueSize}));
  }
  node.set(1, node.has(3) ? cast(node, state, node.in(3).dtype) : state);
}

/// A convolution of each channel [batch, channels, length] with what came before, of which `past_state` is the nearest.
void causalConvWithState(Node &node) {
  const Algebra math(node);
  const Value input = node.floatIn(0), weight = node.floatIn(1);
  const std::string activation = node.stringAttr("activation", "none");
  if (activation != "none" && activation != "silu" && activation != "swish")
    throw Failure("activation '" + activation + "' is none of none, silu, swish");
  if (input.rank() != 3 || weight.rank() != 3 || weight.shape[0] != input.shape[1] || weight.shape[1] != 1 ||
      weight.shape[2] < 1)
    throw Failure("the weight " + toString(weight.shape) + " must be [channels, 1, k] for an input [batch, channels, " +
                  "length], which is " + toString(input.shape));
  const Shape pastShape{input.shape[0], input.shape[1], weight.shape[2] - 1};
  if (node.has(3) && node.floatIn(3).shape != pastShape)
    throw Failure("the past state " + toString(node.in(3).shape) + " must be " + toString(pastShape));
  const bool hasPast = node.has(3) && pastShape[2] > 0;
  llvm::SmallVector<mlir::Value, 3> operands{node.operand(hasPast ? join(node, {node.in(3), input}, 2) : input),
                                             node.operand(weight)};
  if (node.has(2))
    operands.push_back(node.operand(node.floatIn(2)));
  auto op = node.create<train::ConvOp>(operands, {node.list("strides", {1}), node.list("dilations", {1}),
                                                  node.list("low", {hasPast ? 0 : pastShape[2]}),
                                                  node.list("high", {0}), node.number("groups", input.shape[1])});
  const Value result = Value::of(op.getResult());
  node.set(0, activation == "none" ? result : math.mul(result, math.sigmoid(result)));
  if (!node.wants(1))
    return;
  const Value past = hasPast ? node.in(3) : broadcastTo(node, floatScalar(input.dtype, 0), pastShape);
  const Value all = pastShape[2] > 0 ? join(node, {past, input}, 2) : input;
  node.set(1, sliceAlong(node, all, 2, input.shape[2], pastShape[2]));
}

} // namespace ds::import::ops
