//===- AttachedLoss.cpp - from logits to a scalar -------------------------------===//
#include "compiler/import/AttachedLoss.h"

#include "compiler/import/ops/Algebra.h"
#include "compiler/import/ops/Ops.h"

namespace ds::import {
namespace {

/// A node of no file, for the builders.
onnx::NodeProto lossNode() {
  onnx::NodeProto node;
  node.set_op_type("SoftmaxCrossEntropyLoss");
  return node;
}

/// The label of the next token at each token, and none at the last. labels: [batch, tokens].
Value shifted(Node &node, const Value &labels, int64_t ignored) {
  const mlir::Value whole = node.operand(labels);
  auto padded =
      node.create<train::PadOp>({whole}, {node.list("low", {0, 0}), node.list("high", {0, 1}),
                                          node.list("interior", {0, 0}), node.real("value", double(ignored))});
  return sliceAlong(node, Value::of(padded.getResult()), 1, 1, labels.shape[1]);
}

/// What smoothing mixes in, of log-probabilities [rows, classes]: the mean over classes of weight * -log p, summed over
/// the rows that count, by the sum of the weights of their labels.
Value meanOverClasses(Node &node, const Value &logs, const Value &labels, const std::optional<Value> &ofClasses,
                      const Value &weights, int64_t ignored) {
  const Algebra math(node);
  const Value counts = math.negation(math.equal(labels, Value::of(Constant::integer(ignored))));
  const Value means = reduce(node, ReduceFold::Mean, ofClasses ? math.mul(logs, *ofClasses) : logs, {1}, false);
  const Value sum = reduce(node, ReduceFold::Sum, math.choose(counts, means, 0), {0}, false);
  return math.neg(math.div(sum, reduce(node, ReduceFold::Sum, weights, {0}, false)));
}

Value logSoftmax(Node &node, const Value &scores) {
  return Value::of(node.create<train::LogSoftmaxOp>({node.operand(scores)}, {node.number("axis", 1)}).getResult());
}

/// Numbers of the configuration as the logits' type.
Value tableOf(const std::vector<double> &numbers, DType dtype) {
  std::vector<char> bytes;
  for (const double weight : numbers) {
    const float single = float(weight);
    const char *from =
        dtype == DType::F64 ? reinterpret_cast<const char *>(&weight) : reinterpret_cast<const char *>(&single);
    bytes.insert(bytes.end(), from, from + (dtype == DType::F64 ? sizeof weight : sizeof single));
  }
  return Value::of(Constant::dense(dtype, {int64_t(numbers.size())}, std::move(bytes)));
}

/// logits: a row of classes for each label.
Value ofClasses(Node &node, const AttachedLoss &loss, const Value &logits, const Value &labels) {
  const size_t dimension = classDimension(loss.kind, logits.shape);
  const int64_t classes = logits.shape[dimension], rows = elementCount(labels.shape), ignored = loss.ignoreIndex;
  std::vector<int64_t> order;
  for (int64_t i = 0; i < logits.rank(); ++i)
    if (size_t(i) != dimension)
      order.push_back(i);
  order.push_back(int64_t(dimension));
  const Value target = loss.kind == LossKind::CausalLm ? shifted(node, labels, ignored) : labels;
  const Value scores = reshape(node, transpose(node, logits, order), {rows, classes}),
              column = reshape(node, target, {rows});
  const Algebra math(node);
  Value entropy, weights;
  std::optional<Value> weightOfClass;
  if (!loss.classWeights.empty())
    weightOfClass = tableOf(loss.classWeights, logits.dtype);
  if (weightOfClass) {
    const ops::Likelihoods each = ops::likelihoodsOf(node, logSoftmax(node, scores), column, weightOfClass, ignored);
    weights = each.weights;
    entropy = math.div(reduce(node, ReduceFold::Sum, each.losses, {0}, false),
                       reduce(node, ReduceFold::Sum, weights, {0}, false));
  } else {
    entropy = ops::meanCrossEntropy(node, scores, column, ignored);
    weights = cast(node, math.negation(math.equal(column, Value::of(Constant::integer(ignored)))), scores.dtype);
  }
  if (loss.labelSmoothing == 0)
    return entropy;
  const Value spread = meanOverClasses(node, logSoftmax(node, scores), column, weightOfClass, weights, ignored);
  return math.add(math.mul(entropy, 1 - loss.labelSmoothing), math.mul(spread, loss.labelSmoothing));
}

Value meanOfAll(Node &node, const Value &value) {
  std::vector<int64_t> axes;
  for (int64_t axis = 0; axis < value.rank(); ++axis)
    axes.push_back(axis);
  return reduce(node, ReduceFold::Mean, value, axes, false);
}

/// The mean of log(1 + e^logit) - logit * label: binary cross entropy. With weights w of labels of 1 the mean of
/// (1 - label) * logit + (1 + (w - 1) * label) * log(1 + e^-logit).
Value binaryEntropy(Node &node, const AttachedLoss &loss, const Value &logits, const Value &labels) {
  const Algebra math(node);
  if (loss.posWeight.empty())
    return meanOfAll(node, math.sub(ops::softplusOf(node, logits), math.mul(logits, labels)));
  std::vector<double> more = loss.posWeight;
  for (double &weight : more)
    weight -= 1;
  const Value factor = math.add(math.mul(labels, tableOf(more, logits.dtype)), 1);
  const Value absent = math.mul(math.sub(math.number(logits.dtype, 1), labels), logits);
  return meanOfAll(node, math.add(absent, math.mul(factor, ops::softplusOf(node, math.neg(logits)))));
}

/// The mean of (logits - labels)^2.
Value squaredError(Node &node, const Value &logits, const Value &labels) {
  const Algebra math(node);
  const Value difference = math.sub(reshape(node, logits, labels.shape), labels);
  return meanOfAll(node, math.mul(difference, difference));
}

} // namespace

std::string unfitness(LossKind kind, const Shape &logits) {
  const bool ofTokens =
      kind == LossKind::CausalLm || kind == LossKind::MaskedLm || kind == LossKind::TokenClassification;
  if (ofTokens)
    return logits.size() == 3 ? "" : "it needs logits [batch, tokens, classes]";
  if (!choosesClass(kind))
    return logits.empty() ? "it needs logits [batch, ...]" : "";
  if (kind == LossKind::Segmentation && logits.size() < 3)
    return "it needs logits [batch, classes, ...]; classification fits [batch, classes]";
  if (kind == LossKind::Classification && logits.size() != 2)
    return "it needs logits [batch, classes]";
  return logits[1] > 1 ? "" : "one class leaves nothing to choose; multi-label and regression fit";
}

size_t classDimension(LossKind kind, const Shape &logits) {
  return kind == LossKind::Segmentation ? 1 : logits.size() - 1;
}

Shape labelShape(LossKind kind, const Shape &logits) {
  Shape shape = logits;
  if (choosesClass(kind))
    shape.erase(shape.begin() + long(classDimension(kind, logits)));
  else if (kind == LossKind::Regression && shape.size() == 2 && shape.back() == 1)
    shape.pop_back();
  return shape;
}

Value attachedLoss(GraphImporter &graph, const AttachedLoss &loss, const Value &logits, const Value &labels,
                   mlir::Location location) {
  const onnx::NodeProto proto = lossNode();
  const FlatNode flat{&proto, newestOpset};
  Node node(graph, flat, location);
  if (loss.kind == LossKind::MultiLabel)
    return binaryEntropy(node, loss, logits, labels);
  return loss.kind == LossKind::Regression ? squaredError(node, logits, labels) : ofClasses(node, loss, logits, labels);
}

Value weightedSum(GraphImporter &graph, const std::vector<std::pair<std::string, double>> &terms,
                  mlir::Location location) {
  const onnx::NodeProto proto = lossNode();
  const FlatNode flat{&proto, newestOpset};
  Node node(graph, flat, location);
  const Algebra math(node);
  std::optional<Value> sum;
  for (const auto &[name, weight] : terms) {
    const Value &term = graph.lookup(name);
    const Value weighted = weight == 1 ? term : math.mul(term, weight);
    sum = sum ? math.add(*sum, weighted) : weighted;
  }
  return *sum;
}

} // namespace ds::import
