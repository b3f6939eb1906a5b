//===- GradientsConv.cpp - gradients of convolution and pooling -----------===//
#include "dialects/Train/Gradients.h"

using namespace mlir;
using namespace ds::train;

using Gradients = SmallVectorImpl<Value>;

#define DS_GRADIENT(OP)                                                                                                \
  LogicalResult OP::buildGradient(OpBuilder &plain, ValueRange gradients, const BitVector &needed, Gradients &out)

/// All dimensions but the channels'.
static SmallVector<int64_t> allButChannels(Value value) {
  SmallVector<int64_t> axes{0};
  for (int64_t d = 2; d < tensorType(value).getRank(); ++d)
    axes.push_back(d);
  return axes;
}

DS_GRADIENT(ConvOp) {
  ImplicitLocOpBuilder b(getLoc(), plain);
  if (needed[0])
    out[0] = ConvInputGradOp::create(b, gradients[0], getWeight(), getStrides(), getDilations(), getLow(), getHigh(),
                                     getGroups(), tensorType(getInput()).getShape());
  if (needed[1])
    out[1] = ConvWeightGradOp::create(b, gradients[0], getInput(), getStrides(), getDilations(), getLow(), getHigh(),
                                      getGroups(), tensorType(getWeight()).getShape());
  if (getBias() && needed[2])
    out[2] = ReduceSumOp::create(b, gradients[0], allButChannels(gradients[0]));
  return success();
}

/// Linear in both operands, as the convolution that it undoes.
DS_GRADIENT(ConvInputGradOp) {
  ImplicitLocOpBuilder b(getLoc(), plain);
  if (needed[0])
    out[0] = ConvOp::create(b, gradients[0], getWeight(), /*bias=*/Value(), getStrides(), getDilations(), getLow(),
                            getHigh(), getGroups());
  if (needed[1])
    out[1] = ConvWeightGradOp::create(b, getGradient(), gradients[0], getStrides(), getDilations(), getLow(), getHigh(),
                                      getGroups(), tensorType(getWeight()).getShape());
  return success();
}

DS_GRADIENT(MaxPoolOp) {
  ImplicitLocOpBuilder b(getLoc(), plain);
  if (needed[0])
    out[0] = MaxPoolGradOp::create(b, gradients[0], getInput(), getWindow(), getStrides(), getDilations(), getLow(),
                                   getHigh());
  return success();
}

DS_GRADIENT(AveragePoolOp) {
  ImplicitLocOpBuilder b(getLoc(), plain);
  if (needed[0])
    out[0] = AveragePoolGradOp::create(b, gradients[0], getWindow(), getStrides(), getDilations(), getLow(), getHigh(),
                                       tensorType(getInput()).getShape());
  return success();
}
