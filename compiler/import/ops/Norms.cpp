//===- Norms.cpp - softmax, norms of rows, dropout -------------------------------------------------===//
#include "compiler/import/Hazards.h"
#include "compiler/import/ops/Algebra.h"
#include "compiler/import/ops/Epsilon.h"
#include "compiler/import/ops/Ops.h"

#include <limits>

namespace ds::import::ops {

template <typename OpTy> static Value softmaxAlong(Node &node, const Value &input, size_t axis) {
  return Value::of(node.create<OpTy>({node.operand(input)}, {node.number("axis", int64_t(axis))}).getResult());
}

/// Before opset 13 the axis is 1 by default, and all dimensions from it on are one.
template <typename OpTy> static void softmaxOp(Node &node) {
  const Value input = node.floatIn(0);
  if (input.rank() == 0) // a row of one element
    return node.set(0, reshape(node, softmaxAlong<OpTy>(node, reshape(node, input, {1}), 0), {}));
  if (node.opset() >= 13)
    return node.set(0, softmaxAlong<OpTy>(node, input, node.axisAttr("axis", -1, input.rank())));
  const size_t axis = node.axisAttr("axis", std::min<int64_t>(1, input.rank() - 1), input.rank());
  int64_t rows = 1, columns = 1;
  for (size_t i = 0; i < input.shape.size(); ++i)
    (i < axis ? rows : columns) *= input.shape[i];
  if (axis + 1 == input.shape.size())
    return node.set(0, softmaxAlong<OpTy>(node, input, axis));
  const Value flat = softmaxAlong<OpTy>(node, reshape(node, input, {rows, columns}), 1);
  node.set(0, reshape(node, flat, input.shape));
}

/// Whether a mask that is not known is added to scores, or chooses among them: it may hide all of a row.
static bool mayHideRows(const Value &scores) {
  mlir::Operation *op = scores.value ? scores.value.getDefiningOp() : nullptr;
  if (auto choice = mlir::dyn_cast_if_present<train::SelectOp>(op))
    return !choice.getCondition().getDefiningOp<train::ConstantOp>();
  auto sum = mlir::dyn_cast_if_present<train::AddOp>(op);
  return sum && !sum.getLhs().getDefiningOp<train::ConstantOp>() && !sum.getRhs().getDefiningOp<train::ConstantOp>();
}

/// torch.nn.functional.scaled_dot_product_attention gives a query that sees no key zeros, and its exporter forgets it;
/// `ds-regroup-attention` knows what is written here.
void softmax(Node &node) {
  const Value scores = node.floatIn(0);
  if (!cameFrom(node.proto(), "scaled_dot_product_attention") || node.opset() < 13 || !mayHideRows(scores))
    return softmaxOp<train::SoftmaxOp>(node);
  const Algebra math(node);
  const size_t axis = node.axisAttr("axis", -1, scores.rank());
  const Value largest = reduce(node, ReduceFold::Max, scores, {int64_t(axis)}, /*keepDims=*/true);
  const Value hidden = math.equal(largest, -std::numeric_limits<double>::infinity());
  const Value rest = softmaxAlong<train::SoftmaxOp>(node, math.choose(hidden, 0, scores), axis);
  node.set(0, math.choose(hidden, 0, rest));
}
void logSoftmax(Node &node) { softmaxOp<train::LogSoftmaxOp>(node); }

/// Outputs mean and 1 / sqrt(variance + epsilon) keep the normalised dimensions as 1.
void layerNormalization(Node &node) {
  const Value input = node.floatIn(0), scale = node.floatIn(1);
  const size_t axis = node.axisAttr("axis", -1, input.rank());
  const Shape normal(input.shape.begin() + long(axis), input.shape.end());
  const Value zero = floatScalar(input.dtype, 0);
  const Value shift = broadcastTo(node, node.has(2) ? node.floatIn(2) : zero, normal);
  // What of the shapes broadcasts within `normal` is spread; more than that would change the result's shape.
  const Value wide = broadcastTo(node, scale, normal);
  auto op = node.create<train::LayerNormOp>({node.operand(input), node.operand(wide), node.operand(shift)},
                                            {node.real("epsilon", epsilonOf(node))});
  Shape statistics = input.shape;
  std::fill(statistics.begin() + long(axis), statistics.end(), 1);
  node.set(0, Value::of(op.getResult()));
  if (node.wants(1))
    node.set(1, reshape(node, Value::of(op.getMean()), statistics));
  if (node.wants(2))
    node.set(2, reshape(node, Value::of(op.getRstd()), statistics));
}

void rmsNormalization(Node &node) {
  const Value input = node.floatIn(0), scale = node.floatIn(1);
  const size_t axis = node.axisAttr("axis", -1, input.rank());
  const Value wide = broadcastTo(node, scale, {input.shape.begin() + long(axis), input.shape.end()});
  const mlir::Value x = node.operand(input), factors = node.operand(wide);
  auto op = node.create<train::RmsNormOp>({x, factors}, {node.real("epsilon", epsilonOf(node))});
  node.set(0, Value::of(op.getResult()));
}

static double dropoutRatio(Node &node) {
  if (node.opset() < 12)
    return node.floatAttr("ratio", 0.5);
  if (!node.has(1))
    return 0.5;
  const Constant ratio = node.known(1, "ratio");
  if (ratio.elements() != 1 || !ds::isFloat(ratio.dtype()))
    throw Failure("the ratio must be one float");
  return ratio.dtype() == DType::F32 ? shortestDecimal(float(ratio.firstAsDouble())) : ratio.firstAsDouble();
}

/// Whether the node drops; what an exporter lost is decided by --dropout.
static bool drops(Node &node, double ratio) {
  using Mode = ImportOptions::Dropout;
  const Mode mode = node.graph().options().dropout;
  const bool saysMode = node.opset() >= 12 && node.has(2);
  if (ratio == 0 || mode == Mode::Off)
    return false;
  if (node.opset() < 7)
    return node.integerAttr("is_test", 0) == 0 || mode == Mode::Force;
  if (saysMode) {
    const Constant training = node.known(2, "training_mode");
    if (training.elements() != 1)
      throw Failure("training_mode must be a scalar");
    return training.firstAsDouble() != 0 || mode == Mode::Force;
  }
  if (mode != Mode::Refuse)
    return mode == Mode::Force;
  const bool attention = fxCallOf(node.proto()).target.find("scaled_dot_product_attention") != std::string::npos;
  throw Failure(std::string(attention ? "the exporter lost that this attention dropout" : "dropout") + " of ratio " +
                text(ratio) + (attention ? " is for training" : " has no training_mode, so it drops nothing") +
                "; export with attn_implementation=\"eager\" in training mode, or choose with "
                "--dropout=as-written|force|off" +
                saysMore("dropout-mode"));
}

void dropout(Node &node) {
  const Value input = node.floatIn(0);
  const double ratio = dropoutRatio(node);
  if (!(ratio >= 0 && ratio < 1))
    throw Failure("the ratio is " + text(ratio) + " and must be at least 0 and less than 1");
  const DType maskType = node.opset() < 10 ? input.dtype : DType::Bool;
  const Value ones = broadcastTo(node, floatScalar(input.dtype, 1), input.shape);
  if (!drops(node, ratio)) {
    node.set(0, input);
    return node.set(1, cast(node, ones, maskType));
  }
  const NamedAttrs attributes{node.real("ratio", ratio), node.number("op_id", node.graph().nextDrawId())};
  auto drop = [&](const Value &value) {
    return Value::of(node.create<train::DropoutOp>({node.operand(value)}, attributes).getResult());
  };
  node.set(0, drop(input));
  if (node.wants(1)) // what the op leaves of ones
    node.set(1, cast(node, cast(node, drop(ones), DType::Bool), maskType));
}

/// (x - mean) / (standard deviation + 1e-9) over the axes.
void meanVarianceNormalization(Node &node) {
  const Algebra math(node);
  const Value input = node.floatIn(0);
  const std::vector<int64_t> axes =
      Node::axes(node.integersAttr("axes").value_or(std::vector<int64_t>{0, 2, 3}), input.rank());
  const Value centered = math.sub(input, reduce(node, ReduceFold::Mean, input, axes, true));
  const Value variance = reduce(node, ReduceFold::Mean, math.mul(centered, centered), axes, true);
  node.set(0, math.div(centered, math.add(math.sqrt(variance), 1e-9)));
}

/// x / (sum |x|^p)^(1/p) along an axis, p being 1 or 2; zeros stay.
void lpNormalization(Node &node) {
  const Algebra math(node);
  const Value input = node.floatIn(0);
  const size_t axis = node.axisAttr("axis", -1, input.rank());
  const int64_t p = node.integerAttr("p", 2);
  if (p != 1 && p != 2)
    throw Failure("p is " + std::to_string(p) + " and must be 1 or 2");
  const Value powers = p == 1 ? math.abs(input) : math.mul(input, input);
  const Value sum = reduce(node, ReduceFold::Sum, powers, {int64_t(axis)}, true);
  const Value divisor = math.choose(math.equal(sum, 0), 1, sum); // before the root, whose slope at 0 is infinite
  node.set(0, math.div(input, p == 1 ? divisor : math.sqrt(divisor)));
}

} // namespace ds::import::ops
