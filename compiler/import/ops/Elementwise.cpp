//===- Elementwise.cpp - arithmetic, comparisons, activations -------------------------===//
#include "compiler/import/ops/Conventions.h"
#include "compiler/import/ops/Ops.h"
#include "dialects/Train/StopGradient.h"

#include <limits>
#include <numbers>

namespace ds::import::ops {

/// The second operand. Before opset 7 it broadcasts only where the node says so, at `axis` or at the end.
static Value secondOperand(Node &node) {
  Value rhs = node.in(1);
  if (node.opset() >= 7)
    return rhs;
  const Shape &left = node.in(0).shape;
  if (node.integerAttr("broadcast", 0) == 0 && rhs.shape != left)
    throw Failure("the shapes " + toString(left) + " and " + toString(rhs.shape) +
                  " differ, and before opset 7 only broadcast=1 repeats");
  if (!node.attribute("axis", 2))
    return rhs;
  const size_t axis = node.axisAttr("axis", 0, int64_t(left.size()));
  if (axis + rhs.shape.size() > left.size())
    throw Failure("a tensor of shape " + toString(rhs.shape) + " at axis " + std::to_string(axis) +
                  " does not fit into " + toString(left));
  Shape shape = rhs.shape;
  shape.resize(left.size() - axis, 1);
  return reshape(node, rhs, shape);
}

template <typename OpTy, BinaryFold kind> static void binaryOp(Node &node) {
  const Value lhs = node.in(0);
  node.set(0, binary<OpTy>(node, kind, lhs, secondOperand(node)));
}
template <typename OpTy, UnaryFold kind> static void unaryOp(Node &node) {
  node.set(0, unary<OpTy>(node, kind, node.in(0)));
}

void add(Node &node) { binaryOp<train::AddOp, BinaryFold::Add>(node); }
void sub(Node &node) { binaryOp<train::SubOp, BinaryFold::Sub>(node); }
void mul(Node &node) { binaryOp<train::MulOp, BinaryFold::Mul>(node); }

/// The angle of (x, y) and that of (-x, -y) alike, within half a turn: of whichever quotient is at most 1, so that no
/// gradient is infinity times 0. Its gradient where both are 0 is 0.
static Value angle(const Algebra &math, const Value &y, const Value &x) {
  const Value width = math.abs(x), height = math.abs(y), steep = math.less(width, height);
  const Value over = math.choose(steep, x, y), under = math.choose(steep, y, x);
  const Value isZero = math.equal(under, 0);
  const Value dividend = math.choose(isZero, 0, over), divisor = math.choose(isZero, 1, under);
  const Value flat = math.atan(math.div(dividend, divisor));
  const Value left = math.less(x, 0), above = math.greater(y, 0), sameSide = math.exactlyOne(left, above);
  const Value quarter = math.choose(sameSide, std::numbers::pi / 2, math.number(x.dtype, -std::numbers::pi / 2));
  return math.choose(steep, math.sub(quarter, flat), flat);
}

/// atan2 and sinc come as quotients of which those by 0 are not taken; yet they would make the gradients NaN.
void div(Node &node) {
  const Algebra math(node);
  if (cameFrom(node.proto(), "atan2."))
    return node.set(0, angle(math, node.floatIn(0), node.floatIn(1)));
  if (cameFrom(node.proto(), "sinc.")) {
    const Value x = node.floatIn(1);
    return node.set(0, math.div(node.floatIn(0), math.choose(math.equal(x, 0), 1, x)));
  }
  binaryOp<train::DivOp, BinaryFold::Div>(node);
}
void logicalAnd(Node &node) { binaryOp<train::AndOp, BinaryFold::And>(node); }
void logicalOr(Node &node) { binaryOp<train::OrOp, BinaryFold::Or>(node); }
void logicalXor(Node &node) { binaryOp<train::XorOp, BinaryFold::Xor>(node); }
void equal(Node &node) { binaryOp<train::EqualOp, BinaryFold::Equal>(node); }
void less(Node &node) { binaryOp<train::LessOp, BinaryFold::Less>(node); }
void lessOrEqual(Node &node) { binaryOp<train::LessEqualOp, BinaryFold::LessEqual>(node); }
void greater(Node &node) { binaryOp<train::GreaterOp, BinaryFold::Greater>(node); }
void greaterOrEqual(Node &node) { binaryOp<train::GreaterEqualOp, BinaryFold::GreaterEqual>(node); }

void neg(Node &node) { unaryOp<train::NegOp, UnaryFold::Neg>(node); }
void abs(Node &node) { unaryOp<train::AbsOp, UnaryFold::Abs>(node); }
/// `value` before it was viewed, repeated or scaled.
static mlir::Value withoutScale(mlir::Value value) {
  for (;;) {
    mlir::Operation *op = value.getDefiningOp();
    if (mlir::isa_and_nonnull<train::ReshapeOp, train::BroadcastOp>(op)) {
      value = op->getOperand(0);
    } else if (mlir::isa_and_nonnull<train::MulOp, train::DivOp>(op) &&
               op->getOperand(1).getDefiningOp<train::ConstantOp>()) {
      value = op->getOperand(0);
    } else {
      return value;
    }
  }
}

/// Whether `value` is a mean, or a sum, of squares of what is left of a mean.
static bool isVariance(mlir::Value value) {
  mlir::Operation *sum = withoutScale(value).getDefiningOp();
  if (!mlir::isa_and_nonnull<train::ReduceMeanOp, train::ReduceSumOp>(sum))
    return false;
  mlir::Operation *square = sum->getOperand(0).getDefiningOp();
  if (!mlir::isa_and_nonnull<train::MulOp, train::PowOp>(square) ||
      (mlir::isa<train::MulOp>(square) && square->getOperand(0) != square->getOperand(1)))
    return false;
  auto rest = square->getOperand(0).getDefiningOp<train::SubOp>();
  return rest && mlir::isa_and_nonnull<train::ReduceMeanOp>(withoutScale(rest.getRhs()).getDefiningOp());
}

/// The root of a variance is a standard deviation, whose gradient at 0 is 0 in PyTorch.
void sqrt(Node &node) {
  const Value x = node.in(0);
  if (x.value && isVariance(x.value))
    return node.set(0, orZero(node, x, [&](const Value &safe) { return Algebra(node).sqrt(safe); }));
  unaryOp<train::SqrtOp, UnaryFold::Sqrt>(node);
}
void reciprocal(Node &node) { unaryOp<train::ReciprocalOp, UnaryFold::Reciprocal>(node); }
void exp(Node &node) { unaryOp<train::ExpOp, UnaryFold::Exp>(node); }
/// Of a sigmoid -log(1 + e^-x), which neither underflows nor loses digits: torch's exporter writes logsigmoid, and so
/// the binary cross entropy of logits, as two operators.
void log(Node &node) {
  const Value x = node.in(0);
  auto sigmoid = x.value ? x.value.getDefiningOp<train::SigmoidOp>() : train::SigmoidOp();
  if (!sigmoid)
    return unaryOp<train::LogOp, UnaryFold::Log>(node);
  const Algebra math(node);
  node.set(0, math.neg(softplusOf(node, math.neg(Value::of(sigmoid.getInput())))));
}
void erf(Node &node) { unaryOp<train::ErfOp, UnaryFold::Erf>(node); }
void tanh(Node &node) { unaryOp<train::TanhOp, UnaryFold::Tanh>(node); }
void sigmoid(Node &node) { unaryOp<train::SigmoidOp, UnaryFold::Sigmoid>(node); }
void relu(Node &node) { unaryOp<train::ReluOp, UnaryFold::Relu>(node); }
void sin(Node &node) { unaryOp<train::SinOp, UnaryFold::Sin>(node); }
void cos(Node &node) { unaryOp<train::CosOp, UnaryFold::Cos>(node); }
void sign(Node &node) { unaryOp<train::SignOp, UnaryFold::Sign>(node); }
void floor(Node &node) { unaryOp<train::FloorOp, UnaryFold::Floor>(node); }
void ceil(Node &node) { unaryOp<train::CeilOp, UnaryFold::Ceil>(node); }
void round(Node &node) { unaryOp<train::RoundOp, UnaryFold::Round>(node); }
void logicalNot(Node &node) { unaryOp<train::NotOp, UnaryFold::Not>(node); }
void isNan(Node &node) { unaryOp<train::IsNanOp, UnaryFold::IsNan>(node); }

void isInf(Node &node) {
  const Algebra math(node);
  const Value x = node.floatIn(0);
  const double infinity = std::numeric_limits<double>::infinity();
  const bool positive = node.integerAttr("detect_positive", 1) != 0,
             negative = node.integerAttr("detect_negative", 1) != 0;
  if (positive && negative)
    node.set(0, math.equal(math.abs(x), infinity));
  else if (positive || negative)
    node.set(0, math.equal(x, positive ? infinity : -infinity));
  else
    node.set(0, broadcastTo(node, math.number(DType::Bool, 0), x.shape));
}

/// The exponent may have another type than the base, whose type the result has. Integers go through float64.
void pow(Node &node) {
  const Value base = node.in(0), exponent = secondOperand(node);
  const DType type = ds::isFloat(base.dtype) ? base.dtype : DType::F64;
  const Value floatBase = cast(node, base, type);
  const Algebra math(node);
  const Value floatExponent = cast(node, exponent, type);
  // A norm of order p: its gradient at 0 is 0 in PyTorch.
  const std::optional<Constant> known = node.graph().known(floatExponent);
  const bool isRoot = known && known->elements() == 1 && known->firstAsDouble() < 1;
  const auto power = [&](const Value &x) { return math.power(x, floatExponent); };
  const bool isNorm = isRoot && cameFrom(node.proto(), "linalg_vector_norm.");
  const Value result = isNorm ? orZero(node, floatBase, power) : power(floatBase);
  node.set(0, cast(node, result, base.dtype));
}

/// The remainder with the divisor's sign, or with fmod=1 the dividend's.
void mod(Node &node) {
  const Algebra math(node);
  const Value a = node.in(0), b = node.in(1);
  const bool truncates = node.integerAttr("fmod", 0) != 0;
  if (ds::isFloat(a.dtype) && !truncates)
    throw Failure("a remainder of floats needs fmod=1");
  const std::optional<Constant> x = node.graph().known(a), y = node.graph().known(b);
  if (x && y && !truncates && a.dtype == b.dtype && a.dtype != DType::Bool)
    return node.set(0,
                    Value::of(*foldBinary(BinaryFold::Mod, *x, *y, broadcastShape(a.shape, b.shape), node.budget())));
  Value quotient = math.div(a, b);
  if (ds::isFloat(a.dtype)) {
    const Value negative = math.less(quotient, 0), up = math.ceil(quotient), down = math.floor(quotient);
    quotient = math.choose(negative, up, down);
  }
  const Value rest = math.sub(a, math.mul(quotient, b));
  if (truncates)
    return node.set(0, rest);
  const Value left = math.less(rest, 0), right = math.less(b, 0);
  const Value differ = math.exactlyOne(left, right);
  const Value wrong = math.both(differ, math.negation(math.equal(rest, 0)));
  node.set(0, math.choose(wrong, math.add(rest, b), rest));
}

/// From left to right over all inputs.
template <typename OpTy, BinaryFold kind> static Value variadic(Node &node) {
  Value result = node.in(0);
  for (size_t i = 1; i < node.inputs(); ++i)
    result = binary<OpTy>(node, kind, result, node.in(i));
  return result;
}

/// A bound takes the gradient beyond itself; at itself x keeps it, as in torch.clamp, or `strict` loses it.
static Value within(Node &node, const Value &x, const Value &bound, bool isLeast, bool strict) {
  const Algebra math(node);
  if (!ds::isFloat(x.dtype))
    return isLeast ? math.max(x, bound) : math.min(x, bound);
  const Value &low = isLeast ? x : bound, &high = isLeast ? bound : x;
  return math.choose(strict ? lessEqual(node, low, high) : math.less(low, high), bound, x); // NaN stays
}

void max(Node &node) {
  node.set(0, cameFrom(node.proto(), "clamp") ? within(node, node.in(0), node.in(1), true, false)
                                              : variadic<train::MaxOp, BinaryFold::Max>(node));
}
void min(Node &node) {
  node.set(0, cameFrom(node.proto(), "clamp") ? within(node, node.in(0), node.in(1), false, false)
                                              : variadic<train::MinOp, BinaryFold::Min>(node));
}
void sum(Node &node) { node.set(0, variadic<train::AddOp, BinaryFold::Add>(node)); }
void mean(Node &node) {
  const Value total = variadic<train::AddOp, BinaryFold::Add>(node);
  node.floatIn(0);
  const Value count = floatScalar(total.dtype, double(node.inputs()));
  node.set(0, binary<train::DivOp>(node, BinaryFold::Div, total, count));
}

/// A choice by the mode of the module stays one, until its evaluation is made.
static Value selectByMode(Node &node) {
  const mlir::Value condition = node.operand(node.in(0));
  auto choice = node.create<train::SelectOp>({condition, node.operand(node.in(1)), node.operand(node.in(2))});
  choice->setAttr(train::byModeAttribute, node.builder().getUnitAttr());
  return Value::of(choice.getResult());
}

void where(Node &node) {
  const bool byMode = node.graph().metadata().modes.count(node.proto().input(0)) != 0;
  node.set(0, byMode ? selectByMode(node) : select(node, node.in(0), node.in(1), node.in(2)));
}

void clip(Node &node) {
  auto bound = [&](size_t input, const char *attribute) -> std::optional<Value> {
    if (node.opset() < 11) {
      const onnx::AttributeProto *found = node.attribute(attribute, 1);
      return found ? std::optional(floatScalar(node.in(0).dtype, double(found->f()))) : std::nullopt;
    }
    return node.has(input) ? std::optional(node.in(input)) : std::nullopt;
  };
  const std::optional<Value> least = bound(1, "min"), most = bound(2, "max");
  auto is = [&](const std::optional<Value> &value, double number) {
    return value && value->isConstant() && value->constant.isUniform() && value->constant.firstAsDouble() == number;
  };
  // Most files do not say where a Clip came from, but from 0 to 6 is relu6 (MobileNet), which loses the gradient at 0.
  const bool strict = cameFrom(node.proto(), "relu6") || cameFrom(node.proto(), "hardtanh") ||
                      (is(least, 0) && is(most, 6) && !cameFrom(node.proto(), "clamp"));
  Value result = node.in(0);
  if (least)
    result = within(node, result, *least, true, strict);
  if (most)
    result = within(node, result, *most, false, strict);
  node.set(0, result);
}

/// Before opset 6 the type is a word.
static int castTarget(Node &node) {
  if (node.opset() >= 6)
    return int(node.integerAttr("to", 0));
  const std::string word = node.stringAttr("to", "");
  const std::pair<const char *, int> words[] = {{"FLOAT", 1}, {"INT32", 6}, {"INT64", 7}, {"BOOL", 9}, {"DOUBLE", 11}};
  for (const auto &[name, number] : words)
    if (word == name)
      return number;
  throw Failure("casts to '" + word + "', which is not available yet; FLOAT, DOUBLE, INT32, INT64 and BOOL are");
}

void castTo(Node &node) {
  const int number = castTarget(node);
  const std::optional<DType> to =
      node.graph().known(node.in(0)) ? knownTypeFromOnnx(number) : valueTypeFromOnnx(number);
  if (!to)
    throw Failure("casts to " + onnxTypeName(number) +
                  ", which is not available yet; float32, float64, float16, bfloat16, int32, int64 and bool are" +
                  (knownTypeFromOnnx(number) ? ", and of constants uint8, uint16 and uint32" : ""));
  node.set(0, cast(node, node.in(0), *to));
}

void castLike(Node &node) { node.set(0, cast(node, node.in(0), node.in(1).dtype)); }

/// Also what is left of Tensor.detach.
void identity(Node &node) {
  const Value input = node.anyIn(0);
  if (!cameFrom(node.proto(), "detach") || input.kind == Value::Kind::Sequence || !ds::isFloat(input.dtype) ||
      node.graph().known(input))
    return node.set(0, input);
  const mlir::Value whole = node.operand(input);
  const auto element = mlir::TypeAttr::get(mlir::getElementTypeOrSelf(whole.getType()));
  auto stop = node.create<train::CastOp>({whole}, {node.builder().getNamedAttr("element_type", element)});
  stop->setAttr(train::stopGradientAttribute, node.builder().getUnitAttr());
  node.set(0, Value::of(stop.getResult()));
}

} // namespace ds::import::ops
