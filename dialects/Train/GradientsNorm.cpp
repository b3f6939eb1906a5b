//===- GradientsNorm.cpp - gradients of softmax, norms, dropout, losses -----===//
#include "dialects/Train/Gradients.h"

using namespace mlir;
using namespace ds::train;

using Gradients = SmallVectorImpl<Value>;

#define DS_GRADIENT(OP)                                                                                                \
  LogicalResult OP::buildGradient(OpBuilder &plain, ValueRange gradients, const BitVector &needed, Gradients &out)

DS_GRADIENT(SoftmaxOp) {
  ImplicitLocOpBuilder b(getLoc(), plain);
  if (needed[0])
    out[0] = SoftmaxGradOp::create(b, getResult(), gradients[0], getAxis());
  return success();
}

DS_GRADIENT(LogSoftmaxOp) {
  ImplicitLocOpBuilder b(getLoc(), plain);
  if (needed[0])
    out[0] = LogSoftmaxGradOp::create(b, getResult(), gradients[0], getAxis());
  return success();
}

DS_GRADIENT(LayerNormOp) {
  if (gradients[1] || gradients[2])
    return emitOpError("has no gradient through its mean or rstd");
  ImplicitLocOpBuilder b(getLoc(), plain);
  auto grad = LayerNormGradOp::create(b, gradients[0], getInput(), getScale(), getMean(), getRstd(), Value());
  for (unsigned i = 0; i < 3; ++i)
    if (needed[i])
      out[i] = grad.getResult(i);
  return success();
}

DS_GRADIENT(RmsNormOp) {
  if (gradients[1])
    return emitOpError("has no gradient through its rrms");
  ImplicitLocOpBuilder b(getLoc(), plain);
  auto grad = RmsNormGradOp::create(b, gradients[0], getInput(), getScale(), getRrms(), Value());
  for (unsigned i = 0; i < 2; ++i)
    if (needed[i])
      out[i] = grad.getResult(i);
  return success();
}

DS_GRADIENT(BatchNormOp) {
  if (gradients[1] || gradients[2] || gradients[3])
    return emitOpError("has no gradient through its mean, variance or rstd");
  ImplicitLocOpBuilder b(getLoc(), plain);
  auto grad = BatchNormGradOp::create(b, gradients[0], getInput(), getScale(), getMean(), getRstd());
  for (unsigned i = 0; i < 3; ++i)
    if (needed[i])
      out[i] = grad.getResult(i);
  return success();
}

DS_GRADIENT(DropoutOp) {
  ImplicitLocOpBuilder b(getLoc(), plain);
  if (needed[0]) // the same mask, drawn again
    out[0] = DropoutOp::create(b, gradients[0], getRatioAttr(), getOpIdAttr());
  return success();
}

DS_GRADIENT(CrossEntropyOp) {
  if (gradients[1])
    return emitOpError("has no gradient through its log-sum-exp");
  ImplicitLocOpBuilder b(getLoc(), plain);
  if (needed[0])
    out[0] = CrossEntropyGradOp::create(b, getLogits(), getLabels(), getLse(), gradients[0], getIgnoreIndexAttr(),
                                        getReductionAttr(), getClassesAttr());
  return success();
}
