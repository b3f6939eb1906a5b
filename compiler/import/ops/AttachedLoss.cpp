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

/// The mean over the rows that count of the mean over classes of -log p: what smoothing mixes in. scores: [rows,
/// classes].
Value meanOverClasses(Node &node, const Value &scores, const Value &labels, int64_t ignored) {
  const Algebra math(node);
  const Value counts = math.negation(math.equal(labels, Value::of(Constant::integer(ignored))));
  const Value weights = cast(node, counts, scores.dtype);
  const Value logs =
      Value::of(node.create<train::LogSoftmaxOp>({node.operand(scores)}, {node.number("axis", 1)}).getResult());
  const Value means = reduce(node, ReduceFold::Mean, logs, {1}, false);
  const Value sum = reduce(node, ReduceFold::Sum, math.choose(counts, means, 0), {0}, false);
  return math.neg(math.div(sum, reduce(node, ReduceFold::Sum, weights, {0}, false)));
}

/// logits: [.., classes] with a row for each label.
Value ofClasses(Node &node, const AttachedLoss &loss, const Value &logits, const Value &labels) {
  const int64_t classes = logits.shape.back(), rows = elementCount(labels.shape);
  const Value target = loss.kind == LossKind::CausalLm ? shifted(node, labels, loss.ignoreIndex) : labels;
  const Value scores = reshape(node, logits, {rows, classes}), column = reshape(node, target, {rows});
  const Value entropy = ops::meanCrossEntropy(node, scores, column, loss.ignoreIndex);
  if (loss.labelSmoothing == 0)
    return entropy;
  const Algebra math(node);
  return math.add(math.mul(entropy, 1 - loss.labelSmoothing),
                  math.mul(meanOverClasses(node, scores, column, loss.ignoreIndex), loss.labelSmoothing));
}

/// The mean of (logits - labels)^2.
Value squaredError(Node &node, const Value &logits, const Value &labels) {
  const Algebra math(node);
  const Value difference = math.sub(reshape(node, logits, labels.shape), labels);
  std::vector<int64_t> axes;
  for (int64_t axis = 0; axis < labels.rank(); ++axis)
    axes.push_back(axis);
  return reduce(node, ReduceFold::Mean, math.mul(difference, difference), axes, false);
}

} // namespace

std::string unfitness(LossKind kind, const Shape &logits) {
  const bool ofTokens =
      kind == LossKind::CausalLm || kind == LossKind::MaskedLm || kind == LossKind::TokenClassification;
  if (ofTokens)
    return logits.size() == 3 ? "" : "it needs logits [batch, tokens, classes]";
  if (kind == LossKind::Regression)
    return logits.size() == 1 || logits.size() == 2 ? "" : "it needs logits [batch] or [batch, numbers]";
  if (logits.size() != 2)
    return "it needs logits [batch, classes]";
  return logits[1] > 1 ? "" : "one class leaves nothing to choose; regression fits";
}

Shape labelShape(LossKind kind, const Shape &logits) {
  Shape shape = logits;
  if (kind != LossKind::Regression || (shape.size() > 1 && shape.back() == 1))
    shape.pop_back();
  return shape;
}

Value attachedLoss(GraphImporter &graph, const AttachedLoss &loss, const Value &logits, const Value &labels,
                   mlir::Location location) {
  const onnx::NodeProto proto = lossNode();
  const FlatNode flat{&proto, newestOpset};
  Node node(graph, flat, location);
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
