//===- GradientsLinear.cpp - gradients of matrix products and reductions --===//
#include "dialects/Train/Gradients.h"

using namespace mlir;
using namespace ds::train;

using Gradients = SmallVectorImpl<Value>;

static ArrayRef<int64_t> shapeOf(Value value) { return tensorType(value).getShape(); }

static Value product(ImplicitLocOpBuilder &b, Value lhs, bool transposeLhs, Value rhs, bool transposeRhs) {
  return MatmulOp::create(b, lhs, rhs, /*bias=*/Value(), transposeLhs, transposeRhs);
}

/// [..., M, N] as [rows, N].
static Value asMatrix(ImplicitLocOpBuilder &b, Value value) {
  const int64_t columns = shapeOf(value).back();
  const int64_t rows = columns ? tensorType(value).getNumElements() / columns : 0;
  return reshapeTo(b, value, {rows, columns});
}

LogicalResult MatmulOp::buildGradient(OpBuilder &plain, ValueRange gradients, const BitVector &needed, Gradients &out) {
  ImplicitLocOpBuilder b(getLoc(), plain);
  Value lhs = getLhs(), rhs = getRhs(), gradient = gradients[0];
  const bool tl = getTransA(), tr = getTransB();
  if (getBias() && needed[2])
    out[2] = sumTo(b, gradient, shapeOf(getBias()));
  // A matrix on the right (a linear layer): all leading dimensions are rows, and the weight's gradient is one product.
  const bool linear = tensorType(rhs).getRank() == 2 && !tl && tensorType(rhs).getNumElements() > 0;
  if (linear) {
    lhs = asMatrix(b, lhs);
    gradient = asMatrix(b, gradient);
  }
  if (needed[0]) { // op(a) = c op(b)^T
    Value d = tl ? product(b, rhs, tr, gradient, true) : product(b, gradient, false, rhs, !tr);
    out[0] = linear ? reshapeTo(b, d, shapeOf(getLhs())) : sumTo(b, d, shapeOf(getLhs()));
  }
  if (needed[1]) { // op(b) = op(a)^T c
    Value d = tr ? product(b, gradient, true, lhs, tl) : product(b, lhs, !tl, gradient, false);
    out[1] = sumTo(b, d, shapeOf(getRhs()));
  }
  return success();
}

/// `value`, which lacks `axes`, repeated along them to `shape`.
static Value repeatAlong(ImplicitLocOpBuilder &b, Value value, ArrayRef<int64_t> axes, ArrayRef<int64_t> shape) {
  SmallVector<int64_t> kept(shape);
  for (int64_t axis : axes)
    kept[axis] = 1;
  value = reshapeTo(b, value, kept);
  return ArrayRef<int64_t>(kept) == shape ? value : BroadcastOp::create(b, value, shape);
}

LogicalResult ReduceSumOp::buildGradient(OpBuilder &plain, ValueRange gradients, const BitVector &needed,
                                         Gradients &out) {
  ImplicitLocOpBuilder b(getLoc(), plain);
  if (needed[0])
    out[0] = repeatAlong(b, gradients[0], getAxes(), shapeOf(getInput()));
  return success();
}

LogicalResult ReduceMeanOp::buildGradient(OpBuilder &plain, ValueRange gradients, const BitVector &needed,
                                          Gradients &out) {
  ImplicitLocOpBuilder b(getLoc(), plain);
  double count = 1;
  for (int64_t axis : getAxes())
    count *= double(shapeOf(getInput())[axis]);
  if (needed[0]) {
    Value share = DivOp::create(b, gradients[0], scalar(b, gradients[0], count));
    out[0] = repeatAlong(b, share, getAxes(), shapeOf(getInput()));
  }
  return success();
}

LogicalResult ReduceMaxOp::buildGradient(OpBuilder &plain, ValueRange gradients, const BitVector &needed,
                                         Gradients &out) {
  ImplicitLocOpBuilder b(getLoc(), plain);
  if (!needed[0])
    return success();
  ArrayRef<int64_t> shape = shapeOf(getInput());
  Value largest = EqualOp::create(b, getInput(), repeatAlong(b, getResult(), getAxes(), shape));
  Value ones = CastOp::create(b, largest, TypeAttr::get(getElementTypeOrSelf(getInput().getType())));
  Value share = DivOp::create(b, gradients[0], ReduceSumOp::create(b, ones, getAxes()));
  out[0] = MulOp::create(b, ones, repeatAlong(b, share, getAxes(), shape));
  return success();
}
