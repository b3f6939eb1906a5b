//===- GradientsElementwise.cpp - gradients of elementwise ops ------------===//
//
// Each is the textbook derivative times the result's gradient, then summed back over broadcast dimensions. Where
// PyTorch chooses a convention (ties of max, pow at 0) so do we.
//
//===----------------------------------------------------------------------===//
#include "dialects/Train/Gradients.h"

#include "mlir/IR/Matchers.h"

#include <numbers>

using namespace mlir;
using namespace ds::train;

using Gradients = SmallVectorImpl<Value>;

Value ds::train::scalar(ImplicitLocOpBuilder &builder, Value like, double value) {
  Type element = getElementTypeOrSelf(like.getType());
  auto type = RankedTensorType::get({}, element);
  return ConstantOp::create(builder, type, DenseElementsAttr::get(type, builder.getFloatAttr(element, value)));
}

Value ds::train::reshapeTo(ImplicitLocOpBuilder &builder, Value value, ArrayRef<int64_t> shape) {
  return tensorType(value).getShape() == shape ? value : ReshapeOp::create(builder, value, shape);
}

Value ds::train::sumTo(ImplicitLocOpBuilder &builder, Value gradient, ArrayRef<int64_t> shape) {
  ArrayRef<int64_t> from = tensorType(gradient).getShape();
  const size_t added = from.size() - shape.size();
  SmallVector<int64_t> axes;
  for (size_t i = 0; i < from.size(); ++i)
    if (i < added || (shape[i - added] == 1 && from[i] != 1))
      axes.push_back(i);
  if (!axes.empty())
    gradient = ReduceSumOp::create(builder, gradient, axes);
  return reshapeTo(builder, gradient, shape);
}

std::optional<double> ds::train::splatOf(Value value) {
  DenseElementsAttr elements;
  if (!matchPattern(value, m_Constant(&elements)) || !elements.isSplat() || !isa<FloatType>(elements.getElementType()))
    return std::nullopt;
  return elements.getSplatValue<APFloat>().convertToDouble();
}

static ArrayRef<int64_t> shapeOf(Value value) { return tensorType(value).getShape(); }
static Value sub(ImplicitLocOpBuilder &b, Value x, Value y) { return SubOp::create(b, x, y); }
static Value mul(ImplicitLocOpBuilder &b, Value x, Value y) { return MulOp::create(b, x, y); }
static Value div(ImplicitLocOpBuilder &b, Value x, Value y) { return DivOp::create(b, x, y); }
static Value neg(ImplicitLocOpBuilder &b, Value x) { return NegOp::create(b, x); }

//===-- two and three operands ------------------------------------------------===//

#define DS_GRADIENT(OP)                                                                                                \
  LogicalResult OP::buildGradient(OpBuilder &plain, ValueRange gradients, const BitVector &needed, Gradients &out)

DS_GRADIENT(AddOp) {
  ImplicitLocOpBuilder b(getLoc(), plain);
  if (needed[0])
    out[0] = sumTo(b, gradients[0], shapeOf(getLhs()));
  if (needed[1])
    out[1] = sumTo(b, gradients[0], shapeOf(getRhs()));
  return success();
}

DS_GRADIENT(SubOp) {
  ImplicitLocOpBuilder b(getLoc(), plain);
  if (needed[0])
    out[0] = sumTo(b, gradients[0], shapeOf(getLhs()));
  if (needed[1])
    out[1] = neg(b, sumTo(b, gradients[0], shapeOf(getRhs())));
  return success();
}

DS_GRADIENT(MulOp) {
  ImplicitLocOpBuilder b(getLoc(), plain);
  if (needed[0])
    out[0] = sumTo(b, mul(b, gradients[0], getRhs()), shapeOf(getLhs()));
  if (needed[1])
    out[1] = sumTo(b, mul(b, gradients[0], getLhs()), shapeOf(getRhs()));
  return success();
}

DS_GRADIENT(DivOp) {
  ImplicitLocOpBuilder b(getLoc(), plain);
  if (needed[0])
    out[0] = sumTo(b, div(b, gradients[0], getRhs()), shapeOf(getLhs()));
  if (needed[1]) // d(l / r) / dr = -(l / r) / r
    out[1] = sumTo(b, neg(b, mul(b, gradients[0], div(b, getResult(), getRhs()))), shapeOf(getRhs()));
  return success();
}

DS_GRADIENT(PowOp) {
  ImplicitLocOpBuilder b(getLoc(), plain);
  if (needed[0]) { // r * l^(r - 1)
    std::optional<double> exponent = splatOf(getRhs());
    if (exponent == 0.0)
      return success();
    Value lower = exponent ? scalar(b, getRhs(), *exponent - 1) : sub(b, getRhs(), scalar(b, getRhs(), 1));
    Value power = exponent == 2.0 ? getLhs() : PowOp::create(b, getLhs(), lower).getResult();
    Value factor = exponent ? scalar(b, getRhs(), *exponent) : getRhs();
    Value product = mul(b, gradients[0], mul(b, factor, power));
    if (!exponent) { // 0 * 0^-1 is no number
      Value zero = scalar(b, getRhs(), 0);
      product = SelectOp::create(b, EqualOp::create(b, getRhs(), zero), zero, product);
    }
    out[0] = sumTo(b, product, shapeOf(getLhs()));
  }
  if (needed[1]) { // l^r * ln l, and 0 where l is 0 and r >= 0
    Value zero = scalar(b, getLhs(), 0);
    Value baseIsZero = EqualOp::create(b, getLhs(), zero), noPole = GreaterEqualOp::create(b, getRhs(), zero);
    Value atZero = AndOp::create(b, baseIsZero, noPole);
    Value derivative = mul(b, getResult(), LogOp::create(b, getLhs()));
    out[1] = sumTo(b, SelectOp::create(b, atZero, zero, mul(b, gradients[0], derivative)), shapeOf(getRhs()));
  }
  return success();
}

/// Max and min: the gradient goes to the winner; equal operands share it, as in torch.maximum.
static void extremumGradient(ImplicitLocOpBuilder &b, Value lhs, Value rhs, Value lhsWins, Value gradient,
                             const BitVector &needed, Gradients &out) {
  Value zero = scalar(b, gradient, 0), tie = EqualOp::create(b, lhs, rhs);
  Value half = mul(b, gradient, scalar(b, gradient, 0.5));
  Value lost = SelectOp::create(b, tie, half, zero);
  if (needed[0])
    out[0] = sumTo(b, SelectOp::create(b, lhsWins, gradient, lost), shapeOf(lhs));
  if (needed[1]) {
    Value won = SelectOp::create(b, tie, half, gradient);
    out[1] = sumTo(b, SelectOp::create(b, lhsWins, zero, won), shapeOf(rhs));
  }
}
DS_GRADIENT(MaxOp) {
  ImplicitLocOpBuilder b(getLoc(), plain);
  extremumGradient(b, getLhs(), getRhs(), GreaterOp::create(b, getLhs(), getRhs()), gradients[0], needed, out);
  return success();
}
DS_GRADIENT(MinOp) {
  ImplicitLocOpBuilder b(getLoc(), plain);
  extremumGradient(b, getLhs(), getRhs(), LessOp::create(b, getLhs(), getRhs()), gradients[0], needed, out);
  return success();
}

DS_GRADIENT(SelectOp) {
  ImplicitLocOpBuilder b(getLoc(), plain);
  Value zero = scalar(b, gradients[0], 0);
  if (needed[1])
    out[1] = sumTo(b, SelectOp::create(b, getCondition(), gradients[0], zero), shapeOf(getOnTrue()));
  if (needed[2])
    out[2] = sumTo(b, SelectOp::create(b, getCondition(), zero, gradients[0]), shapeOf(getOnFalse()));
  return success();
}

//===-- one operand --------------------------------------------------------------===//

/// Defines the gradient of a unary op by an expression in b, dy, x and y. At most one argument of a call may make ops:
/// C++ does not say in which order arguments are evaluated, and the order of ops must not depend on the compiler.
#define DS_UNARY_GRADIENT(OP, EXPRESSION)                                                                              \
  DS_GRADIENT(OP) {                                                                                                    \
    ImplicitLocOpBuilder b(getLoc(), plain);                                                                           \
    [[maybe_unused]] Value dy = gradients[0], x = getInput(), y = getResult();                                         \
    if (needed[0])                                                                                                     \
      out[0] = EXPRESSION;                                                                                             \
    return success();                                                                                                  \
  }
DS_UNARY_GRADIENT(NegOp, neg(b, dy))
DS_UNARY_GRADIENT(AbsOp, mul(b, dy, SignOp::create(b, x)))
DS_UNARY_GRADIENT(SqrtOp, div(b, dy, mul(b, scalar(b, y, 2), y)))
DS_UNARY_GRADIENT(ReciprocalOp, mul(b, dy, neg(b, mul(b, y, y))))
DS_UNARY_GRADIENT(ExpOp, mul(b, dy, y))
DS_UNARY_GRADIENT(LogOp, div(b, dy, x))
DS_UNARY_GRADIENT(Expm1Op, mul(b, dy, AddOp::create(b, y, scalar(b, y, 1))))
DS_UNARY_GRADIENT(Log1pOp, div(b, dy, AddOp::create(b, x, scalar(b, x, 1))))
DS_UNARY_GRADIENT(GeluTanhOp, mul(b, dy, GeluTanhSlopeOp::create(b, x)))
DS_UNARY_GRADIENT(SigmoidOp, mul(b, dy, mul(b, y, sub(b, scalar(b, y, 1), y))))
DS_UNARY_GRADIENT(SinOp, mul(b, dy, CosOp::create(b, x)))
DS_UNARY_GRADIENT(CosOp, neg(b, mul(b, dy, SinOp::create(b, x))))
DS_UNARY_GRADIENT(SignOp, Value())
DS_UNARY_GRADIENT(FloorOp, Value())
DS_UNARY_GRADIENT(CeilOp, Value())
DS_UNARY_GRADIENT(RoundOp, Value())

DS_GRADIENT(RsqrtOp) { // -y^3 / 2
  ImplicitLocOpBuilder b(getLoc(), plain);
  if (!needed[0])
    return success();
  Value y = getResult(), cube = mul(b, y, mul(b, y, y)), factor = scalar(b, y, -0.5);
  out[0] = mul(b, gradients[0], mul(b, factor, cube));
  return success();
}

DS_GRADIENT(AtanOp) { // 1 / (1 + x^2)
  ImplicitLocOpBuilder b(getLoc(), plain);
  if (!needed[0])
    return success();
  Value square = mul(b, getInput(), getInput()), one = scalar(b, getInput(), 1);
  out[0] = div(b, gradients[0], AddOp::create(b, one, square));
  return success();
}

DS_GRADIENT(ErfOp) { // 2 / sqrt(pi) * exp(-x^2)
  ImplicitLocOpBuilder b(getLoc(), plain);
  if (!needed[0])
    return success();
  Value x = getInput(), bell = ExpOp::create(b, neg(b, mul(b, x, x)));
  Value factor = scalar(b, x, 2 * std::numbers::inv_sqrtpi);
  out[0] = mul(b, gradients[0], mul(b, factor, bell));
  return success();
}

DS_GRADIENT(TanhOp) { // 1 - y^2
  ImplicitLocOpBuilder b(getLoc(), plain);
  if (!needed[0])
    return success();
  Value y = getResult(), one = scalar(b, y, 1), square = mul(b, y, y);
  out[0] = mul(b, gradients[0], sub(b, one, square));
  return success();
}

DS_GRADIENT(ReluOp) {
  ImplicitLocOpBuilder b(getLoc(), plain);
  if (!needed[0])
    return success();
  Value zero = scalar(b, getResult(), 0), passed = GreaterOp::create(b, getResult(), zero);
  out[0] = SelectOp::create(b, passed, gradients[0], zero);
  return success();
}

DS_GRADIENT(CastOp) {
  ImplicitLocOpBuilder b(getLoc(), plain);
  Type from = getElementTypeOrSelf(getInput().getType());
  if (needed[0] && isa<FloatType>(from) && isa<FloatType>(getElementType()))
    out[0] = CastOp::create(b, gradients[0], TypeAttr::get(from));
  return success();
}
