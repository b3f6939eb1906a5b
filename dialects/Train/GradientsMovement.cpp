//===- GradientsMovement.cpp - gradients of reshapes, slices, gathers ------===//
#include "dialects/Train/Gradients.h"

using namespace mlir;
using namespace ds::train;

using Gradients = SmallVectorImpl<Value>;

#define DS_GRADIENT(OP)                                                                                                \
  LogicalResult OP::buildGradient(OpBuilder &plain, ValueRange gradients, const BitVector &needed, Gradients &out)

DS_GRADIENT(ReshapeOp) {
  ImplicitLocOpBuilder b(getLoc(), plain);
  if (needed[0])
    out[0] = reshapeTo(b, gradients[0], tensorType(getInput()).getShape());
  return success();
}

DS_GRADIENT(TransposeOp) {
  ImplicitLocOpBuilder b(getLoc(), plain);
  SmallVector<int64_t> inverse(getPerm().size());
  for (auto [to, from] : llvm::enumerate(getPerm()))
    inverse[from] = to;
  if (needed[0])
    out[0] = TransposeOp::create(b, gradients[0], inverse);
  return success();
}

DS_GRADIENT(BroadcastOp) {
  ImplicitLocOpBuilder b(getLoc(), plain);
  if (needed[0])
    out[0] = sumTo(b, gradients[0], tensorType(getInput()).getShape());
  return success();
}

DS_GRADIENT(SliceOp) {
  ImplicitLocOpBuilder b(getLoc(), plain);
  SmallVector<int64_t> high, interior;
  for (auto [dim, extent] : llvm::enumerate(tensorType(getInput()).getShape())) {
    const int64_t size = getSizes()[dim], step = getSteps()[dim], start = getStarts()[dim];
    const int64_t end = size == 0 ? start : start + (size - 1) * step + 1;
    high.push_back(extent - end);
    interior.push_back(step - 1);
  }
  if (needed[0])
    out[0] = PadOp::create(b, gradients[0], getStarts(), high, interior, llvm::APFloat(0.0));
  return success();
}

DS_GRADIENT(PadOp) {
  ImplicitLocOpBuilder b(getLoc(), plain);
  SmallVector<int64_t> steps;
  for (int64_t interior : getInterior())
    steps.push_back(interior + 1);
  if (needed[0])
    out[0] = SliceOp::create(b, gradients[0], getLow(), tensorType(getInput()).getShape(), steps);
  return success();
}

DS_GRADIENT(ConcatOp) {
  ImplicitLocOpBuilder b(getLoc(), plain);
  const size_t rank = tensorType(getResult()).getRank();
  SmallVector<int64_t> starts(rank, 0), steps(rank, 1);
  for (auto [i, input] : llvm::enumerate(getInputs())) {
    ArrayRef<int64_t> sizes = tensorType(input).getShape();
    if (needed[i])
      out[i] = SliceOp::create(b, gradients[0], starts, sizes, steps);
    starts[getAxis()] += sizes[getAxis()];
  }
  return success();
}

/// torch.nn.Embedding's padding_idx: no gradient reaches what was gathered from that place.
static Value withoutPadding(ImplicitLocOpBuilder &b, GatherOp gather, Value gradient, int64_t padding) {
  auto indices = tensorType(gather.getIndices());
  auto number = RankedTensorType::get({}, indices.getElementType());
  Value place =
      ConstantOp::create(b, number, DenseElementsAttr::get(number, b.getIntegerAttr(number.getElementType(), padding)));
  // One flag an index, in front of the dimensions that each takes along.
  SmallVector<int64_t> shape(indices.getShape());
  shape.resize(tensorType(gradient).getRank() - gather.getAxis(), 1);
  Value isPadding = reshapeTo(b, EqualOp::create(b, gather.getIndices(), place), shape);
  return SelectOp::create(b, isPadding, scalar(b, gradient, 0), gradient);
}

DS_GRADIENT(GatherOp) {
  ImplicitLocOpBuilder b(getLoc(), plain);
  Value gradient = gradients[0];
  if (auto padding = (*this)->getAttrOfType<IntegerAttr>(paddingAttribute))
    gradient = withoutPadding(b, *this, gradient, padding.getInt());
  if (needed[0])
    out[0] = GatherGradOp::create(b, gradient, getIndices(), getAxis(), tensorType(getData()).getShape());
  return success();
}
