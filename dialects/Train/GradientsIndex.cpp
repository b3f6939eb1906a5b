//===- GradientsIndex.cpp - gradients of gathers, scatters, running sums ---===//
#include "dialects/Train/Gradients.h"

using namespace mlir;
using namespace ds::train;

using Gradients = SmallVectorImpl<Value>;

#define DS_GRADIENT(OP)                                                                                                \
  LogicalResult OP::buildGradient(OpBuilder &plain, ValueRange gradients, const BitVector &needed, Gradients &out)

/// A zero in the shape of `like`.
static Value zeros(ImplicitLocOpBuilder &b, Value like) {
  Value zero = scalar(b, like, 0);
  ArrayRef<int64_t> shape = tensorType(like).getShape();
  return shape.empty() ? zero : BroadcastOp::create(b, zero, shape);
}

/// `gradient` at `indices` of a zero in the shape of `like`.
static Value scatterInto(ImplicitLocOpBuilder &b, Value like, Value indices, Value gradient, uint64_t axis) {
  return ScatterElementsOp::create(b, zeros(b, like), indices, gradient, axis, ScatterReduction::Add);
}

DS_GRADIENT(GatherElementsOp) {
  ImplicitLocOpBuilder b(getLoc(), plain);
  if (needed[0])
    out[0] = scatterInto(b, getData(), getIndices(), gradients[0], getAxis());
  return success();
}

DS_GRADIENT(ScatterElementsOp) {
  ImplicitLocOpBuilder b(getLoc(), plain);
  const bool replaces = getReduction() == ScatterReduction::Replace;
  if (!replaces && getReduction() != ScatterReduction::Add)
    return emitOpError() << "with reduction " << stringifyScatterReduction(getReduction())
                         << " has no gradient; replacing and adding have one, as has a maximum or minimum along a "
                            "dimension of torch.where(mask, x, fill)";
  if (needed[0] && !replaces)
    out[0] = gradients[0];
  if (needed[0] && replaces) {
    Value none = zeros(b, getUpdates());
    out[0] = ScatterElementsOp::create(b, gradients[0], getIndices(), none, getAxis(), getReduction());
  }
  if (needed[2])
    out[2] = GatherElementsOp::create(b, gradients[0], getIndices(), getAxis());
  return success();
}

DS_GRADIENT(TopKOp) {
  ImplicitLocOpBuilder b(getLoc(), plain);
  if (needed[0] && gradients[0])
    out[0] = scatterInto(b, getInput(), getIndices(), gradients[0], tensorType(getInput()).getRank() - 1);
  return success();
}

DS_GRADIENT(CumSumOp) {
  ImplicitLocOpBuilder b(getLoc(), plain);
  if (needed[0])
    out[0] = CumSumOp::create(b, gradients[0], getAxis(), getExclusive(), !getReverse());
  return success();
}
