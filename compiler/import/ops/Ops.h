//===- Ops.h - a builder per operator ------------------------------------------------===//
//
// Each reads the node's inputs and attributes as ONNX defines them for the node's opset, and sets its outputs.
//===----------------------------------------------------------------------===//
#pragma once

#include "compiler/import/Node.h"

namespace ds::import::ops {

// ChannelNorms.cpp
void batchNormalization(Node &node);
void instanceNormalization(Node &node);
void groupNormalization(Node &node);
void localResponseNormalization(Node &node);

// ControlFlow.cpp
void ifElse(Node &node);
void loop(Node &node);
void scan(Node &node);

// Conv.cpp
void conv(Node &node);
void convTranspose(Node &node);
void maxPool(Node &node);
void maxUnpool(Node &node);
void averagePool(Node &node);
void globalAveragePool(Node &node);
void globalMaxPool(Node &node);
// Activations.cpp
void gelu(Node &node);
void leakyRelu(Node &node);
void elu(Node &node);
void celu(Node &node);
void selu(Node &node);
void prelu(Node &node);
void thresholdedRelu(Node &node);
/// log(1 + e^x)
Value softplusOf(Node &node, const Value &x);
void softplus(Node &node);
void softsign(Node &node);
void hardSigmoid(Node &node);
void hardSwish(Node &node);
void swish(Node &node);
void mish(Node &node);
void shrink(Node &node);
void tan(Node &node);
void asin(Node &node);
void acos(Node &node);
void atan(Node &node);
void sinh(Node &node);
void cosh(Node &node);
void asinh(Node &node);
void acosh(Node &node);
void atanh(Node &node);

// Einsum.cpp
void einsum(Node &node);

// Elementwise.cpp
void add(Node &node);
void sub(Node &node);
void mul(Node &node);
void div(Node &node);
void logicalAnd(Node &node);
void logicalOr(Node &node);
void logicalXor(Node &node);
void equal(Node &node);
void less(Node &node);
void lessOrEqual(Node &node);
void greater(Node &node);
void greaterOrEqual(Node &node);
void neg(Node &node);
void abs(Node &node);
void sqrt(Node &node);
void reciprocal(Node &node);
void exp(Node &node);
void log(Node &node);
void erf(Node &node);
void tanh(Node &node);
void sigmoid(Node &node);
void relu(Node &node);
void sin(Node &node);
void cos(Node &node);
void sign(Node &node);
void floor(Node &node);
void ceil(Node &node);
void round(Node &node);
void logicalNot(Node &node);
void isNan(Node &node);
void isInf(Node &node);
void pow(Node &node);
void mod(Node &node);
void max(Node &node);
void min(Node &node);
void sum(Node &node);
void mean(Node &node);
void where(Node &node);
void clip(Node &node);
void castTo(Node &node);
void castLike(Node &node);
void identity(Node &node);

// Gathering.cpp
void gather(Node &node);
void gatherNd(Node &node);
void gatherElements(Node &node);
void scatterElements(Node &node);
void scatterNd(Node &node);
void argMax(Node &node);
void argMin(Node &node);
void hardmax(Node &node);
void oneHot(Node &node);
void topK(Node &node);
void cumSum(Node &node);

// Linear.cpp
void matMul(Node &node);
void gemm(Node &node);

// LinearAttention.cpp
void linearAttention(Node &node);
void causalConvWithState(Node &node);

// Loss.cpp
/// weight[label] * -score[label] of rows, and weight[label]; both 0 where the label is ignored.
struct Likelihoods {
  Value losses, weights;
};
/// Of log-probabilities [rows, classes] and int64 labels [rows].
Likelihoods likelihoodsOf(Node &node, const Value &scores, const Value &labels, const std::optional<Value> &weights,
                          int64_t ignoreIndex);
/// Of scores [rows, classes] and int64 labels [rows].
Value meanCrossEntropy(Node &node, const Value &scores, const Value &labels, int64_t ignoreIndex);
void softmaxCrossEntropyLoss(Node &node);
void negativeLogLikelihoodLoss(Node &node);

// Movement.cpp
void reshapeTo(Node &node);
void flatten(Node &node);
void squeeze(Node &node);
void unsqueeze(Node &node);
void transposeTo(Node &node);
void expand(Node &node);
void tile(Node &node);
void concat(Node &node);
void depthToSpace(Node &node);
void spaceToDepth(Node &node);
void trilu(Node &node);

// Padding.cpp
void pad(Node &node);

// Norms.cpp
void softmax(Node &node);
void logSoftmax(Node &node);
void layerNormalization(Node &node);
void rmsNormalization(Node &node);
void dropout(Node &node);
void meanVarianceNormalization(Node &node);
void lpNormalization(Node &node);

// Random.cpp
void randomUniform(Node &node);
void randomUniformLike(Node &node);
void randomNormal(Node &node);
void randomNormalLike(Node &node);
void bernoulli(Node &node);

// Recurrent.cpp
void rnn(Node &node);
void gru(Node &node);
void lstm(Node &node);

// Reductions.cpp
void reduceSum(Node &node);
void reduceMean(Node &node);
void reduceMax(Node &node);
void reduceMin(Node &node);
void reduceProd(Node &node);
void reduceL1(Node &node);
void reduceL2(Node &node);
void reduceSumSquare(Node &node);
void reduceLogSum(Node &node);
void reduceLogSumExp(Node &node);

// Resize.cpp
void resize(Node &node);

// Sampling.cpp
void gridSample(Node &node);
void affineGrid(Node &node);

// Selecting.cpp
void compress(Node &node);
void nonZero(Node &node);
void unique(Node &node);
void reverseSequence(Node &node);

// Sequences.cpp
void sequenceConstruct(Node &node);
void sequenceEmpty(Node &node);
void sequenceLength(Node &node);
void sequenceAt(Node &node);
void sequenceInsert(Node &node);
void sequenceErase(Node &node);
void concatFromSequence(Node &node);
void sequenceMap(Node &node);

// Shapes.cpp
void constant(Node &node);
void constantOfShape(Node &node);
void shape(Node &node);
void size(Node &node);
void eyeLike(Node &node);
void range(Node &node);

// Slicing.cpp
void sliceOf(Node &node);
void split(Node &node);
void splitToSequence(Node &node);

// Training.cpp
void gradient(Node &node);
void adam(Node &node);
void adagrad(Node &node);
void momentum(Node &node);
// Attention.cpp
void attention(Node &node);
void rotaryEmbedding(Node &node);

// Windows.cpp
void hannWindow(Node &node);
void hammingWindow(Node &node);
void blackmanWindow(Node &node);

} // namespace ds::import::ops
