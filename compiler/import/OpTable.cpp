//===- OpTable.cpp - which operators are known, in which opsets --------------------===//
#include "compiler/import/OpTable.h"

#include "compiler/import/ops/Ops.h"

#include <map>
#include <span>
#include <string_view>

namespace ds::import {
namespace {

struct Row {
  std::string_view name;
  int64_t from, to; // opsets, both included
  OpBuilderFn build;
};

constexpr int64_t any = oldestOpset, last = newestOpset;

/// Builders read the node's opset where an operator's signature changed in between.
constexpr Row table[] = {
    // elementwise
    {"Add", any, last, ops::add},
    {"Sub", any, last, ops::sub},
    {"Mul", any, last, ops::mul},
    {"Div", any, last, ops::div},
    {"Mod", 10, last, ops::mod},
    {"Pow", any, last, ops::pow},
    {"Neg", any, last, ops::neg},
    {"Abs", any, last, ops::abs},
    {"Sqrt", any, last, ops::sqrt},
    {"Reciprocal", any, last, ops::reciprocal},
    {"Exp", any, last, ops::exp},
    {"Log", any, last, ops::log},
    {"Erf", 9, last, ops::erf},
    {"Tanh", any, last, ops::tanh},
    {"Sigmoid", any, last, ops::sigmoid},
    {"Relu", any, last, ops::relu},
    {"Gelu", 20, last, ops::gelu},
    {"Sin", any, last, ops::sin},
    {"Cos", any, last, ops::cos},
    {"Sign", 9, last, ops::sign},
    {"Floor", any, last, ops::floor},
    {"Ceil", any, last, ops::ceil},
    {"Max", 8, last, ops::max},
    {"Min", 8, last, ops::min},
    {"Sum", 8, last, ops::sum},
    {"Mean", 8, last, ops::mean},
    {"Clip", any, last, ops::clip},
    {"Where", 9, last, ops::where},
    {"Cast", any, last, ops::castTo},
    {"CastLike", 15, last, ops::castLike},
    {"Identity", any, last, ops::identity},
    // without gradient
    {"Equal", any, last, ops::equal},
    {"Less", any, last, ops::less},
    {"LessOrEqual", 12, last, ops::lessOrEqual},
    {"Greater", any, last, ops::greater},
    {"GreaterOrEqual", 12, last, ops::greaterOrEqual},
    {"And", any, last, ops::logicalAnd},
    {"Or", any, last, ops::logicalOr},
    {"Xor", any, last, ops::logicalXor},
    {"Not", any, last, ops::logicalNot},
    {"IsNaN", 9, last, ops::isNan},
    // linear
    {"MatMul", any, last, ops::matMul},
    {"Gemm", any, last, ops::gemm},
    // convolution, pooling
    {"Conv", any, last, ops::conv},
    {"ConvTranspose", any, last, ops::convTranspose},
    {"MaxPool", any, last, ops::maxPool},
    {"AveragePool", any, last, ops::averagePool},
    {"GlobalAveragePool", any, last, ops::globalAveragePool},
    {"GlobalMaxPool", any, last, ops::globalMaxPool},
    // norms, softmax, dropout
    {"Softmax", any, last, ops::softmax},
    {"LogSoftmax", any, last, ops::logSoftmax},
    {"LayerNormalization", 17, last, ops::layerNormalization},
    {"RMSNormalization", 23, last, ops::rmsNormalization},
    {"BatchNormalization", any, last, ops::batchNormalization},
    {"InstanceNormalization", any, last, ops::instanceNormalization},
    {"GroupNormalization", 18, last, ops::groupNormalization},
    {"Dropout", any, last, ops::dropout},
    {"Attention", 23, last, ops::attention},
    {"RotaryEmbedding", 23, last, ops::rotaryEmbedding},
    // reductions
    {"ReduceSum", any, last, ops::reduceSum},
    {"ReduceMean", any, last, ops::reduceMean},
    {"ReduceMax", any, last, ops::reduceMax},
    {"ReduceMin", any, last, ops::reduceMin},
    {"ReduceProd", any, last, ops::reduceProd},
    {"CumSum", 11, last, ops::cumSum},
    // movement
    {"Reshape", any, last, ops::reshapeTo},
    {"Flatten", any, last, ops::flatten},
    {"Squeeze", any, last, ops::squeeze},
    {"Unsqueeze", any, last, ops::unsqueeze},
    {"Transpose", any, last, ops::transposeTo},
    {"Expand", 8, last, ops::expand},
    {"Tile", any, last, ops::tile},
    {"Concat", any, last, ops::concat},
    {"Split", any, last, ops::split},
    {"SplitToSequence", 11, last, ops::splitToSequence},
    {"SequenceAt", 11, last, ops::sequenceAt},
    {"Slice", any, last, ops::sliceOf},
    {"Pad", any, last, ops::pad},
    {"Gather", any, last, ops::gather},
    {"GatherND", 11, last, ops::gatherNd},
    {"GatherElements", 11, last, ops::gatherElements},
    {"Trilu", 14, last, ops::trilu},
    // loss
    {"SoftmaxCrossEntropyLoss", 12, last, ops::softmaxCrossEntropyLoss},
    {"NegativeLogLikelihoodLoss", 12, last, ops::negativeLogLikelihoodLoss},
    // known at import
    {"Constant", any, last, ops::constant},
    {"ConstantOfShape", 9, last, ops::constantOfShape},
    {"Shape", any, last, ops::shape},
    {"Size", any, last, ops::size},
    {"Range", 11, last, ops::range},
};

/// ai.onnx.preview.training, which has had one version.
constexpr Row trainingTable[] = {
    {"Adagrad", 1, 1, ops::adagrad},
    {"Adam", 1, 1, ops::adam},
    {"Gradient", 1, 1, ops::gradient},
    {"Momentum", 1, 1, ops::momentum},
};

/// Why an operator is not in the table, where there is more to say than that.
std::string_view reason(std::string_view op) {
  static const std::map<std::string_view, std::string_view> reasons = {
      {"If", "control flow is not supported: a plan is static; export the branch that training takes"},
      {"Loop", "control flow is not supported: a plan is static; unroll the loop before exporting"},
      {"Scan", "control flow is not supported: a plan is static; unroll the scan before exporting"},
      {"NonZero", "the size of its result depends on data, and a plan is static; use a mask (Where) instead"},
      {"Unique", "the size of its result depends on data, and a plan is static"},
      {"Compress", "the size of its result depends on data, and a plan is static; use a mask (Where) instead"},
  };
  auto found = reasons.find(op);
  return found == reasons.end() ? "the operator is not supported for training yet" : found->second;
}

} // namespace

OpBuilderFn findOp(const FlatNode &node) {
  const std::string &domain = node.proto->domain();
  const bool training = isTrainingDomain(domain);
  if (!domain.empty() && domain != "ai.onnx" && !training)
    throw Failure("operators of domain '" + domain +
                  "' are unknown, and the model defines no function of this name; "
                  "export with the default operators only");
  const Row *known = nullptr;
  for (const Row &row : training ? std::span<const Row>(trainingTable) : std::span<const Row>(table)) {
    if (row.name != node.proto->op_type())
      continue;
    known = &row;
    if (node.opset >= row.from && node.opset <= row.to)
      return row.build;
  }
  if (!known)
    throw Failure(std::string(reason(node.proto->op_type())));
  throw Failure("the operator is known in opsets " + std::to_string(known->from) + " to " + std::to_string(known->to) +
                "; export with opset_version=20");
}

} // namespace ds::import
