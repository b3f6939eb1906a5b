//===- Loss.cpp - cross entropy -----------------------------------------------------------------===//
#include "compiler/import/Hazards.h"
#include "compiler/import/ops/Emit.h"
#include "compiler/import/ops/Ops.h"

#include <limits>

namespace ds::import::ops {

static train::Reduction reductionOf(Node &node) {
  const std::string reduction = node.stringAttr("reduction", "mean");
  if (reduction == "mean")
    return train::Reduction::Mean;
  if (reduction == "sum")
    return train::Reduction::Sum;
  throw Failure("reduction '" + reduction + "' is not available yet; 'mean' and 'sum' are");
}

static void refuseWhatIsMissing(Node &node) {
  if (node.has(2))
    throw Failure("class weights are not available yet");
  if (const double smoothing = lostLabelSmoothing(node.proto()); smoothing != 0)
    throw Failure("the exporter lost label_smoothing=" + text(smoothing) +
                  " of this loss; train without it (label_smoothing=0), or write the smoothed loss out in the model");
}

/// Logits [N, C, d..] with the classes second become [N d.., C], labels [N, d..] become [N d..].
static Value crossEntropy(Node &node, Value logits, Value labels) {
  if (logits.rank() < 2)
    throw Failure("the logits " + toString(logits.shape) + " have no class dimension");
  Shape expected = logits.shape;
  expected.erase(expected.begin() + 1);
  if (labels.shape != expected)
    throw Failure("logits " + toString(logits.shape) + " need labels " + toString(expected) + ", not " +
                  toString(labels.shape));
  if (labels.dtype != DType::I64 && labels.dtype != DType::I32)
    throw Failure("the labels are " + std::string(ds::name(labels.dtype)) + " and must be int32 or int64");
  labels = cast(node, labels, DType::I64);
  if (logits.rank() > 2) {
    std::vector<int64_t> permutation{0};
    for (int64_t i = 2; i < logits.rank(); ++i)
      permutation.push_back(i);
    permutation.push_back(1);
    const int64_t classes = logits.shape[1];
    logits = transpose(node, logits, permutation);
    logits = reshape(node, logits, {elementCount(expected), classes});
    labels = reshape(node, labels, {elementCount(expected)});
  }
  // Without ignore_index nothing is ignored: a label that cannot be.
  const int64_t ignored = node.integerAttr("ignore_index", std::numeric_limits<int64_t>::min());
  auto reduction = train::ReductionAttr::get(node.builder().getContext(), reductionOf(node));
  auto op = node.create<train::CrossEntropyOp>(
      {node.operand(logits), node.operand(labels)},
      {node.number("ignore_index", ignored), node.builder().getNamedAttr("reduction", reduction)});
  return Value::of(op.getLoss());
}

void softmaxCrossEntropyLoss(Node &node) {
  refuseWhatIsMissing(node);
  if (node.wants(1))
    throw Failure("its output log_prob is not available; compute LogSoftmax apart from the loss");
  const Value logits = node.floatIn(0), labels = node.in(1);
  node.set(0, crossEntropy(node, logits, labels));
}

/// -log p[label] of log-probabilities that a LogSoftmax over the classes made: one cross entropy.
void negativeLogLikelihoodLoss(Node &node) {
  refuseWhatIsMissing(node);
  const Value probabilities = node.floatIn(0), labels = node.in(1);
  auto made =
      probabilities.kind == Value::Kind::Runtime ? probabilities.value.getDefiningOp<train::LogSoftmaxOp>() : nullptr;
  if (!made || int64_t(made.getAxis()) != 1)
    throw Failure("is available on the output of LogSoftmax over axis 1 only; use cross entropy on logits");
  node.set(0, crossEntropy(node, Value::of(made.getInput()), labels));
}

} // namespace ds::import::ops
