//===- Elementwise.cpp - arithmetic, comparisons, activations -------------------------===//
#include "compiler/import/ops/Algebra.h"
#include "compiler/import/ops/Ops.h"

#include <limits>

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
void div(Node &node) { binaryOp<train::DivOp, BinaryFold::Div>(node); }
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
void sqrt(Node &node) { unaryOp<train::SqrtOp, UnaryFold::Sqrt>(node); }
void reciprocal(Node &node) { unaryOp<train::ReciprocalOp, UnaryFold::Reciprocal>(node); }
void exp(Node &node) { unaryOp<train::ExpOp, UnaryFold::Exp>(node); }
void log(Node &node) { unaryOp<train::LogOp, UnaryFold::Log>(node); }
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
  const Value power = Algebra(node).power(floatBase, cast(node, exponent, type));
  node.set(0, cast(node, power, base.dtype));
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
void max(Node &node) { node.set(0, variadic<train::MaxOp, BinaryFold::Max>(node)); }
void min(Node &node) { node.set(0, variadic<train::MinOp, BinaryFold::Min>(node)); }
void sum(Node &node) { node.set(0, variadic<train::AddOp, BinaryFold::Add>(node)); }
void mean(Node &node) {
  const Value total = variadic<train::AddOp, BinaryFold::Add>(node);
  node.floatIn(0);
  const Value count = floatScalar(total.dtype, double(node.inputs()));
  node.set(0, binary<train::DivOp>(node, BinaryFold::Div, total, count));
}

void where(Node &node) { node.set(0, select(node, node.in(0), node.in(1), node.in(2))); }

void clip(Node &node) {
  Value result = node.in(0);
  auto bound = [&](size_t input, const char *attribute) -> std::optional<Value> {
    if (node.opset() < 11) {
      const onnx::AttributeProto *found = node.attribute(attribute, 1);
      return found ? std::optional(floatScalar(result.dtype, double(found->f()))) : std::nullopt;
    }
    return node.has(input) ? std::optional(node.in(input)) : std::nullopt;
  };
  if (const std::optional<Value> least = bound(1, "min"))
    result = binary<train::MaxOp>(node, BinaryFold::Max, result, *least);
  if (const std::optional<Value> most = bound(2, "max"))
    result = binary<train::MinOp>(node, BinaryFold::Min, result, *most);
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
  const std::optional<DType> to = valueTypeFromOnnx(number);
  if (!to)
    throw Failure("casts to " + onnxTypeName(number) +
                  ", which is not available yet; float32, float64, float16, bfloat16, int32, int64 and bool are");
  node.set(0, cast(node, node.in(0), *to));
}

void castLike(Node &node) { node.set(0, cast(node, node.in(0), node.in(1).dtype)); }

void identity(Node &node) { node.set(0, node.anyIn(0)); }

} // namespace ds::import::ops
