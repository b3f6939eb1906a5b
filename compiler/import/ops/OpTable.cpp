//===- OpTable.cpp - which operators are known, in which opsets --------------------===//
#include "compiler/import/OpTable.h"

#include "compiler/import/ops/Ops.h"

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
    {"LeakyRelu", any, last, ops::leakyRelu},
    {"PRelu", any, last, ops::prelu},
    {"Elu", any, last, ops::elu},
    {"Selu", any, last, ops::selu},
    {"Celu", 12, last, ops::celu},
    {"ThresholdedRelu", 10, last, ops::thresholdedRelu},
    {"Softplus", any, last, ops::softplus},
    {"Softsign", any, last, ops::softsign},
    {"HardSigmoid", any, last, ops::hardSigmoid},
    {"HardSwish", 14, last, ops::hardSwish},
    {"Swish", 24, last, ops::swish},
    {"Mish", 18, last, ops::mish},
    {"Shrink", 9, last, ops::shrink},
    {"Sin", any, last, ops::sin},
    {"Cos", any, last, ops::cos},
    {"Tan", 7, last, ops::tan},
    {"Asin", 7, last, ops::asin},
    {"Acos", 7, last, ops::acos},
    {"Atan", 7, last, ops::atan},
    {"Sinh", 9, last, ops::sinh},
    {"Cosh", 9, last, ops::cosh},
    {"Asinh", 9, last, ops::asinh},
    {"Acosh", 9, last, ops::acosh},
    {"Atanh", 9, last, ops::atanh},
    {"Sign", 9, last, ops::sign},
    {"Floor", any, last, ops::floor},
    {"Ceil", any, last, ops::ceil},
    {"Round", 11, last, ops::round},
    {"Max", any, last, ops::max},
    {"Min", any, last, ops::min},
    {"Sum", any, last, ops::sum},
    {"Mean", any, last, ops::mean},
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
    {"IsInf", 10, last, ops::isInf},
    // linear
    {"MatMul", any, last, ops::matMul},
    {"Gemm", any, last, ops::gemm},
    // convolution, pooling
    {"Conv", any, last, ops::conv},
    {"ConvTranspose", any, last, ops::convTranspose},
    {"MaxPool", any, last, ops::maxPool},
    {"MaxUnpool", 9, last, ops::maxUnpool},
    {"AveragePool", any, last, ops::averagePool},
    {"GlobalAveragePool", any, last, ops::globalAveragePool},
    {"GlobalMaxPool", any, last, ops::globalMaxPool},
    {"Einsum", 12, last, ops::einsum},
    // norms, softmax, dropout
    {"Softmax", any, last, ops::softmax},
    {"LogSoftmax", any, last, ops::logSoftmax},
    {"LayerNormalization", 17, last, ops::layerNormalization},
    {"RMSNormalization", 23, last, ops::rmsNormalization},
    {"BatchNormalization", any, last, ops::batchNormalization},
    {"InstanceNormalization", any, last, ops::instanceNormalization},
    {"GroupNormalization", 18, last, ops::groupNormalization},
    {"LRN", any, last, ops::localResponseNormalization},
    {"MeanVarianceNormalization", 9, last, ops::meanVarianceNormalization},
    {"LpNormalization", any, last, ops::lpNormalization},
    {"Dropout", any, last, ops::dropout},
    {"Attention", 23, last, ops::attention},
    {"RotaryEmbedding", 23, last, ops::rotaryEmbedding},
    {"LinearAttention", 27, last, ops::linearAttention},
    {"CausalConvWithState", 27, last, ops::causalConvWithState},
    // reductions
    {"ReduceSum", any, last, ops::reduceSum},
    {"ReduceMean", any, last, ops::reduceMean},
    {"ReduceMax", any, last, ops::reduceMax},
    {"ReduceMin", any, last, ops::reduceMin},
    {"ReduceProd", any, last, ops::reduceProd},
    {"ReduceL1", any, last, ops::reduceL1},
    {"ReduceL2", any, last, ops::reduceL2},
    {"ReduceSumSquare", any, last, ops::reduceSumSquare},
    {"ReduceLogSum", any, last, ops::reduceLogSum},
    {"ReduceLogSumExp", any, last, ops::reduceLogSumExp},
    {"CumSum", 11, last, ops::cumSum},
    {"ArgMax", any, last, ops::argMax},
    {"ArgMin", any, last, ops::argMin},
    {"Hardmax", any, last, ops::hardmax},
    {"TopK", any, last, ops::topK},
    {"OneHot", 9, last, ops::oneHot},
    // movement
    {"Reshape", any, last, ops::reshapeTo},
    {"Flatten", any, last, ops::flatten},
    {"Squeeze", any, last, ops::squeeze},
    {"Unsqueeze", any, last, ops::unsqueeze},
    {"Transpose", any, last, ops::transposeTo},
    {"Expand", 8, last, ops::expand},
    {"Tile", 6, last, ops::tile},
    {"Concat", any, last, ops::concat},
    {"Split", any, last, ops::split},
    {"SplitToSequence", 11, last, ops::splitToSequence},
    {"SequenceAt", 11, last, ops::sequenceAt},
    {"SequenceConstruct", 11, last, ops::sequenceConstruct},
    {"SequenceEmpty", 11, last, ops::sequenceEmpty},
    {"SequenceLength", 11, last, ops::sequenceLength},
    {"SequenceInsert", 11, last, ops::sequenceInsert},
    {"SequenceErase", 11, last, ops::sequenceErase},
    {"SequenceMap", 17, last, ops::sequenceMap},
    {"ConcatFromSequence", 11, last, ops::concatFromSequence},
    {"Slice", any, last, ops::sliceOf},
    {"Pad", any, last, ops::pad},
    {"Gather", any, last, ops::gather},
    {"GatherND", 11, last, ops::gatherNd},
    {"GatherElements", 11, last, ops::gatherElements},
    {"ScatterElements", 11, last, ops::scatterElements},
    {"Scatter", 9, last, ops::scatterElements},
    {"ScatterND", 11, last, ops::scatterNd},
    {"Trilu", 14, last, ops::trilu},
    {"DepthToSpace", any, last, ops::depthToSpace},
    {"SpaceToDepth", any, last, ops::spaceToDepth},
    {"Resize", 10, last, ops::resize},
    {"Upsample", 9, 9, ops::resize},
    {"ReverseSequence", 10, last, ops::reverseSequence},
    {"AffineGrid", 20, last, ops::affineGrid},
    {"GridSample", 16, last, ops::gridSample},
    // random numbers
    {"RandomUniform", any, last, ops::randomUniform},
    {"RandomUniformLike", any, last, ops::randomUniformLike},
    {"RandomNormal", any, last, ops::randomNormal},
    {"RandomNormalLike", any, last, ops::randomNormalLike},
    {"Bernoulli", 15, last, ops::bernoulli},
    // recurrent, step by step
    {"LSTM", 7, last, ops::lstm},
    {"GRU", 7, last, ops::gru},
    {"RNN", 7, last, ops::rnn},
    // resolved while importing
    {"If", any, last, ops::ifElse},
    {"Loop", any, last, ops::loop},
    {"Scan", 9, last, ops::scan},
    {"Compress", 9, last, ops::compress},
    {"NonZero", 9, last, ops::nonZero},
    {"Unique", 11, last, ops::unique},
    // loss
    {"SoftmaxCrossEntropyLoss", 12, last, ops::softmaxCrossEntropyLoss},
    {"NegativeLogLikelihoodLoss", 12, last, ops::negativeLogLikelihoodLoss},
    // known at import
    {"Constant", any, last, ops::constant},
    {"ConstantOfShape", 9, last, ops::constantOfShape},
    {"Shape", any, last, ops::shape},
    {"Size", any, last, ops::size},
    {"EyeLike", 9, last, ops::eyeLike},
    {"Range", 11, last, ops::range},
    {"HannWindow", 17, last, ops::hannWindow},
    {"HammingWindow", 17, last, ops::hammingWindow},
    {"BlackmanWindow", 17, last, ops::blackmanWindow},
};

/// ai.onnx.preview.training, which has had one version.
constexpr Row trainingTable[] = {
    {"Adagrad", 1, 1, ops::adagrad},
    {"Adam", 1, 1, ops::adam},
    {"Gradient", 1, 1, ops::gradient},
    {"Momentum", 1, 1, ops::momentum},
};

bool isDefaultDomain(std::string_view domain) { return domain.empty() || domain == "ai.onnx"; }

std::string rangeOf(const Row &row) { return std::to_string(row.from) + " to " + std::to_string(row.to); }

} // namespace

void checkStampedOpset(const FlatGraph &graph) {
  for (const FlatNode &node : graph.nodes)
    for (const Row &row : table)
      if (node.opset == 18 && row.from > 18 && row.name == node.proto->op_type() &&
          isDefaultDomain(node.proto->domain()))
        throw Failure(describe(node) + ": the model says opset 18, but the operator is known in opsets " +
                      rangeOf(row) + "; torch.onnx.export writes such a file when it is asked for an opset above 25: " +
                      "export with opset_version=20, or any from 18 to 25");
}

OpBuilderFn findOp(const FlatNode &node) {
  const std::string &domain = node.proto->domain();
  const bool training = isTrainingDomain(domain);
  if (!isDefaultDomain(domain) && !training)
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
    throw Failure("the operator is not supported for training yet");
  throw Failure("the operator is known in opsets " + rangeOf(*known) + "; export with opset_version=20");
}

} // namespace ds::import
