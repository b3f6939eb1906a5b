//===- Loss.cpp - cross entropy -----------------------------------------------------------------===//
#include "compiler/import/Hazards.h"
#include "compiler/import/ops/Algebra.h"
#include "compiler/import/ops/Ops.h"

#include <limits>
#include <optional>

namespace ds::import::ops {
namespace {

enum class Reduction { None, Mean, Sum };

Reduction reductionOf(Node &node) {
  const std::string reduction = node.stringAttr("reduction", "mean");
  if (reduction == "none")
    return Reduction::None;
  if (reduction == "mean")
    return Reduction::Mean;
  if (reduction == "sum")
    return Reduction::Sum;
  throw Failure("reduction '" + reduction + "' is none of 'none', 'mean' and 'sum'");
}

/// Without ignore_index nothing is ignored: a label that cannot be.
int64_t ignoredLabel(Node &node) { return node.integerAttr("ignore_index", std::numeric_limits<int64_t>::min()); }

void refuseLostSmoothing(Node &node) {
  if (const double smoothing = lostLabelSmoothing(node.proto()); smoothing != 0)
    throw Failure("the exporter lost label_smoothing=" + text(smoothing) +
                  " of this loss; train without it (label_smoothing=0), or write the smoothed loss out in the model" +
                  saysMore("label-smoothing"));
}

/// Scores of classes [M, C] and labels [M] of a loss, and the shape of the labels.
struct Rows {
  Value scores, labels;
  Shape shape;
};

/// Scores [N, C, d..] with the classes second become [N d.., C], labels [N, d..] become [N d..].
Rows rowsOf(Node &node, const Value &scores, const Value &labels) {
  if (scores.rank() < 2)
    throw Failure("the logits " + toString(scores.shape) + " have no class dimension");
  Shape expected = scores.shape;
  expected.erase(expected.begin() + 1);
  if (labels.shape == scores.shape)
    throw Failure("the targets " + toString(labels.shape) +
                  " of this cross entropy are probabilities of the classes, which is not available; write it out as "
                  "-(targets * log_softmax(logits, 1)).sum(1).mean()");
  if (labels.shape != expected)
    throw Failure("logits " + toString(scores.shape) + " need labels " + toString(expected) + ", not " +
                  toString(labels.shape));
  if (labels.dtype != DType::I64 && labels.dtype != DType::I32)
    throw Failure("the labels are " + std::string(ds::name(labels.dtype)) + " and must be int32 or int64");
  const Value wide = cast(node, labels, DType::I64);
  std::vector<int64_t> permutation{0};
  for (int64_t i = 2; i < scores.rank(); ++i)
    permutation.push_back(i);
  permutation.push_back(1);
  const int64_t count = elementCount(expected);
  const Value last = transpose(node, scores, permutation);
  return {reshape(node, last, {count, scores.shape[1]}), reshape(node, wide, {count}), expected};
}

/// One op for what training uses: no weights, a mean or a sum. scores: [M, C], labels: [M].
Value crossEntropy(Node &node, const Value &scores, const Value &labels, int64_t ignored, train::Reduction by) {
  const mlir::Value table = node.operand(scores), column = node.operand(labels);
  const auto reduction = train::ReductionAttr::get(node.builder().getContext(), by);
  auto op = node.create<train::CrossEntropyOp>(
      {table, column}, {node.number("ignore_index", ignored), node.builder().getNamedAttr("reduction", reduction)});
  return Value::of(op.getLoss());
}

Value crossEntropy(Node &node, const Value &logits, const Value &labels) {
  const Rows rows = rowsOf(node, logits, labels);
  return crossEntropy(node, rows.scores, rows.labels, ignoredLabel(node),
                      reductionOf(node) == Reduction::Mean ? train::Reduction::Mean : train::Reduction::Sum);
}

/// -score[label], each times the weight of its label; a mean divides by the sum of the weights.
Value likelihood(Node &node, const Value &scores, const Value &labels) {
  const Algebra math(node);
  const Rows rows = rowsOf(node, scores, labels);
  const int64_t classes = rows.scores.shape[1];
  std::optional<Value> weights;
  if (node.has(2)) {
    if (node.in(2).shape != Shape{classes} || node.in(2).dtype != scores.dtype)
      throw Failure("the weights must be " + std::string(ds::name(scores.dtype)) + " [" + std::to_string(classes) +
                    "], not " + std::string(ds::name(node.in(2).dtype)) + " " + toString(node.in(2).shape));
    weights = node.in(2);
  }
  const Likelihoods each = likelihoodsOf(node, rows.scores, rows.labels, weights, ignoredLabel(node));
  const Reduction reduction = reductionOf(node);
  if (reduction == Reduction::None)
    return reshape(node, each.losses, rows.shape);
  Value sum = reduce(node, ReduceFold::Sum, each.losses, {0}, false);
  if (reduction == Reduction::Sum)
    return sum;
  return math.div(sum, reduce(node, ReduceFold::Sum, each.weights, {0}, false));
}

Value logSoftmaxOfClasses(Node &node, const Value &logits) {
  if (logits.rank() < 2)
    throw Failure("the logits " + toString(logits.shape) + " have no class dimension");
  return Value::of(node.create<train::LogSoftmaxOp>({node.operand(logits)}, {node.number("axis", 1)}).getResult());
}

bool isPlain(Node &node) { return !node.has(2) && reductionOf(node) != Reduction::None; }

} // namespace

Likelihoods likelihoodsOf(Node &node, const Value &scores, const Value &labels, const std::optional<Value> &ofClasses,
                          int64_t ignored) {
  const Algebra math(node);
  const int64_t count = scores.shape[0], classes = scores.shape[1];
  const bool ignores = ignored != std::numeric_limits<int64_t>::min();
  const Value counts = math.negation(math.equal(labels, Value::of(Constant::integer(ignored))));
  // An index may be negative, a label may not: it becomes one that stops the run.
  const Value labelled = math.choose(math.less(labels, 0), double(classes), labels);
  const Value safe = ignores ? math.choose(counts, labelled, 0) : labelled;
  const mlir::Value table = node.operand(scores), column = node.operand(reshape(node, safe, {count, 1}));
  const Value picked =
      Value::of(node.create<train::GatherElementsOp>({table, column}, {node.number("axis", 1)}).getResult());
  Value weights =
      ofClasses ? gatherAlong(node, *ofClasses, safe, 0) : broadcastTo(node, math.number(scores.dtype, 1), {count});
  if (ignores)
    weights = math.choose(counts, weights, 0);
  return {math.mul(math.neg(reshape(node, picked, {count})), weights), weights};
}

Value meanCrossEntropy(Node &node, const Value &scores, const Value &labels, int64_t ignoreIndex) {
  return crossEntropy(node, scores, labels, ignoreIndex, train::Reduction::Mean);
}

void softmaxCrossEntropyLoss(Node &node) {
  refuseLostSmoothing(node);
  const Value logits = node.floatIn(0), labels = node.in(1);
  std::optional<Value> probabilities;
  if (node.wants(1) || !isPlain(node))
    probabilities = logSoftmaxOfClasses(node, logits);
  node.set(0, isPlain(node) ? crossEntropy(node, logits, labels) : likelihood(node, *probabilities, labels));
  if (node.wants(1))
    node.set(1, *probabilities);
}

/// -log p[label]; of log-probabilities that a LogSoftmax over the classes made, one cross entropy.
void negativeLogLikelihoodLoss(Node &node) {
  refuseLostSmoothing(node);
  const Value probabilities = node.floatIn(0), labels = node.in(1);
  auto made =
      probabilities.kind == Value::Kind::Runtime ? probabilities.value.getDefiningOp<train::LogSoftmaxOp>() : nullptr;
  if (made && int64_t(made.getAxis()) == 1 && isPlain(node))
    return node.set(0, crossEntropy(node, Value::of(made.getInput()), labels));
  node.set(0, likelihood(node, probabilities, labels));
}

} // namespace ds::import::ops
