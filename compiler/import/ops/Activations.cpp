//===- Activations.cpp - activations and other functions of one number -----------------------===//
//
// Written out in ops that have gradients. A branch that is not taken must not overflow: its gradient would be 0 times
// infinity.
//
//===----------------------------------------------------------------------===//
#include "compiler/import/ops/Conventions.h"
#include "compiler/import/ops/Ops.h"

#include <numbers>

namespace ds::import::ops {

/// 0.5 x (1 + erf(x / sqrt 2)), or with approximate="tanh" 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))).
void gelu(Node &node) {
  const Algebra math(node);
  const Value x = node.floatIn(0);
  const std::string kind = node.stringAttr("approximate", "none");
  Value inner;
  if (kind == "none") {
    inner = math.erf(math.mul(x, std::numbers::sqrt2 / 2));
  } else if (kind == "tanh") {
    const Value cube = math.mul(math.mul(x, x), x);
    const Value sum = math.add(x, math.mul(cube, 0.044715));
    inner = math.tanh(math.mul(sum, std::sqrt(2 / std::numbers::pi)));
  } else {
    throw Failure("approximate='" + kind + "' is neither 'none' nor 'tanh'");
  }
  const Value half = math.mul(x, 0.5);
  node.set(0, math.mul(half, math.add(inner, 1)));
}

/// x > 0 ? x : below(min(x, 0)), the slope at 0 being that of `below`.
template <typename Below> static void rectified(Node &node, Below below) {
  const Algebra math(node);
  const Value x = node.floatIn(0);
  const Value positive = math.greater(x, 0);
  const Value negative = below(math, math.choose(positive, 0, x));
  node.set(0, math.choose(positive, x, negative));
}

void leakyRelu(Node &node) {
  const double alpha = node.floatAttr("alpha", 0.01);
  rectified(node, [&](const Algebra &math, const Value &x) { return math.mul(x, alpha); });
}

void elu(Node &node) {
  const double alpha = node.floatAttr("alpha", 1);
  rectified(node, [&](const Algebra &math, const Value &x) { return math.mul(math.expm1(x), alpha); });
}

void celu(Node &node) {
  const double alpha = node.floatAttr("alpha", 1);
  if (alpha == 0)
    throw Failure("alpha is 0");
  rectified(node, [&](const Algebra &math, const Value &x) { return math.mul(math.expm1(math.div(x, alpha)), alpha); });
}

void selu(Node &node) {
  const Algebra math(node);
  const double alpha = node.floatAttr("alpha", 1.67326319217681884765625);
  const double gamma = node.floatAttr("gamma", 1.05070102214813232421875);
  const Value x = node.floatIn(0);
  const Value positive = math.greater(x, 0);
  const Value negative = math.mul(math.expm1(math.choose(positive, 0, x)), alpha);
  node.set(0, math.mul(math.choose(positive, x, negative), gamma));
}

/// One slope, or one for each element of what the slopes broadcast to; before opset 7 one for each channel.
void prelu(Node &node) {
  const Algebra math(node);
  const Value x = node.floatIn(0);
  Value slope = node.floatIn(1);
  if (node.opset() < 7 && slope.rank() == 1 && x.rank() > 2) {
    Shape channels(x.shape.size() - 1, 1);
    channels[0] = slope.shape[0];
    slope = reshape(node, slope, channels);
  }
  if (broadcastShape(x.shape, slope.shape) != x.shape)
    throw Failure("slopes " + toString(slope.shape) + " do not broadcast to " + toString(x.shape));
  const Value positive = math.greater(x, 0);
  node.set(0, math.choose(positive, x, math.mul(math.choose(positive, 0, x), slope)));
}

void thresholdedRelu(Node &node) {
  const Algebra math(node);
  const Value x = node.floatIn(0);
  node.set(0, math.choose(math.greater(x, node.floatAttr("alpha", 1)), x, 0));
}

/// log(1 + e^x) = max(x, 0) + log(1 + e^-|x|)
Value softplusOf(Node &node, const Value &x) {
  const Algebra math(node);
  const Value rest = math.log1p(math.exp(math.neg(math.abs(x))));
  return math.add(math.max(x, 0), rest);
}

void softplus(Node &node) { node.set(0, softplusOf(node, node.floatIn(0))); }

void softsign(Node &node) {
  const Algebra math(node);
  const Value x = node.floatIn(0);
  node.set(0, math.div(x, math.add(math.abs(x), 1)));
}

/// Flat at its bounds, too.
static Value hardSigmoidOf(Node &node, const Value &x, double alpha, double beta) {
  const Algebra math(node);
  const Value line = math.add(math.mul(x, alpha), beta);
  const Value low = lessEqual(node, line, math.number(x.dtype, 0)),
              high = lessEqual(node, math.number(x.dtype, 1), line);
  return math.choose(low, 0, math.choose(high, 1, line));
}

void hardSigmoid(Node &node) {
  const double alpha = node.floatAttr("alpha", 0.2), beta = node.floatAttr("beta", 0.5);
  node.set(0, hardSigmoidOf(node, node.floatIn(0), alpha, beta));
}

void hardSwish(Node &node) {
  const Algebra math(node);
  const Value x = node.floatIn(0);
  node.set(0, math.mul(x, hardSigmoidOf(node, x, 1.0 / 6, 0.5)));
}

/// x sigmoid(alpha x)
void swish(Node &node) {
  const Algebra math(node);
  const Value x = node.floatIn(0);
  node.set(0, math.mul(x, math.sigmoid(math.mul(x, node.floatAttr("alpha", 1)))));
}

/// x tanh(softplus(x))
void mish(Node &node) {
  const Algebra math(node);
  const Value x = node.floatIn(0);
  node.set(0, math.mul(x, math.tanh(softplusOf(node, x))));
}

/// 0 within [-lambd, lambd], outside nearer to 0 by bias.
void shrink(Node &node) {
  const Algebra math(node);
  const Value x = node.floatIn(0);
  const double lambda = node.floatAttr("lambd", 0.5), bias = node.floatAttr("bias", 0);
  const Value isAbove = math.greater(x, lambda), isBelow = math.less(x, -lambda);
  const Value above = math.choose(isAbove, math.sub(x, bias), 0);
  node.set(0, math.choose(isBelow, math.add(x, bias), above));
}

//===-- trigonometric and hyperbolic ----------------------------------------------===//

/// In atan2 the quotient is the angle already.
void atan(Node &node) {
  node.set(0, cameFrom(node.proto(), "atan2.") ? node.floatIn(0) : Algebra(node).atan(node.floatIn(0)));
}

void tan(Node &node) {
  const Algebra math(node);
  const Value x = node.floatIn(0), sine = math.sin(x);
  node.set(0, math.div(sine, math.cos(x)));
}

/// atan(x / sqrt(1 - x^2))
static Value asinOf(const Algebra &math, const Value &x) {
  return math.atan(math.div(x, math.sqrt(math.add(math.neg(math.mul(x, x)), 1))));
}

void asin(Node &node) { node.set(0, asinOf(Algebra(node), node.floatIn(0))); }

void acos(Node &node) {
  const Algebra math(node);
  node.set(0, math.add(math.neg(asinOf(math, node.floatIn(0))), std::numbers::pi / 2));
}

/// (e^x - e^-x) / 2
void sinh(Node &node) {
  const Algebra math(node);
  const Value x = node.floatIn(0), up = math.expm1(x), down = math.expm1(math.neg(x));
  node.set(0, math.mul(math.sub(up, down), 0.5));
}

/// (e^x + e^-x) / 2
void cosh(Node &node) {
  const Algebra math(node);
  const Value x = node.floatIn(0), up = math.exp(x), down = math.exp(math.neg(x));
  node.set(0, math.mul(math.add(up, down), 0.5));
}

/// log(|x| + sqrt(x^2 + 1)), with the sign of x; as log1p(|x| + x^2 / (1 + sqrt(x^2 + 1)))
void asinh(Node &node) {
  const Algebra math(node);
  const Value x = node.floatIn(0), negative = math.less(x, 0);
  const Value size = math.choose(negative, math.neg(x), x);
  const Value root = math.sqrt(math.add(math.mul(size, size), 1));
  const Value part = math.mul(size, math.div(size, math.add(root, 1)));
  const Value result = math.log1p(math.add(size, part));
  node.set(0, math.choose(negative, math.neg(result), result));
}

/// log(x + sqrt(x^2 - 1)), as log1p of what it is more than 1
void acosh(Node &node) {
  const Algebra math(node);
  const Value more = math.sub(node.floatIn(0), 1);
  node.set(0, math.log1p(math.add(more, math.sqrt(math.mul(more, math.add(more, 2))))));
}

/// log((1 + x) / (1 - x)) / 2
void atanh(Node &node) {
  const Algebra math(node);
  const Value x = node.floatIn(0), up = math.log1p(x), down = math.log1p(math.neg(x));
  node.set(0, math.mul(math.sub(up, down), 0.5));
}

} // namespace ds::import::ops
