//===- Elementwise.cpp - arithmetic, comparisons, activations -------------------------===//
#include "compiler/import/ops/Emit.h"
#include "compiler/import/ops/Ops.h"

#include <numbers>

namespace ds::import::ops {

template <typename OpTy, BinaryFold kind> static void binaryOp(Node &node) {
  node.set(0, binary<OpTy>(node, kind, node.in(0), node.in(1)));
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
void logicalNot(Node &node) { unaryOp<train::NotOp, UnaryFold::Not>(node); }
void isNan(Node &node) { unaryOp<train::IsNanOp, UnaryFold::IsNan>(node); }

/// The exponent may have another type than the base, whose type the result has.
void pow(Node &node) {
  const Value base = node.in(0);
  node.set(0, binary<train::PowOp>(node, BinaryFold::Pow, base, cast(node, node.in(1), base.dtype)));
}

void mod(Node &node) {
  const Value &a = node.in(0), &b = node.in(1);
  const std::optional<Constant> x = node.graph().known(a), y = node.graph().known(b);
  if (!x || !y || a.dtype != b.dtype || ds::isFloat(a.dtype) || a.dtype == DType::Bool)
    throw Failure("remainders are supported for integers that follow from shapes and constants only");
  const Shape shape = broadcastShape(a.shape, b.shape);
  node.set(0, Value::of(*foldBinary(BinaryFold::Mod, *x, *y, shape, node.budget())));
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

/// 0.5 x (1 + erf(x / sqrt 2)), or with approximate="tanh" 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))).
void gelu(Node &node) {
  const Value x = node.floatIn(0);
  const std::string kind = node.stringAttr("approximate", "none");
  auto scalar = [&](double value) { return floatScalar(x.dtype, value); };
  auto times = [&](const Value &a, const Value &b) { return binary<train::MulOp>(node, BinaryFold::Mul, a, b); };
  auto plus = [&](const Value &a, const Value &b) { return binary<train::AddOp>(node, BinaryFold::Add, a, b); };
  Value inner;
  if (kind == "none") {
    inner = unary<train::ErfOp>(node, UnaryFold::Erf, times(x, scalar(std::numbers::sqrt2 / 2)));
  } else if (kind == "tanh") {
    const Value cube = times(times(x, x), x);
    const Value sum = plus(x, times(cube, scalar(0.044715)));
    inner = unary<train::TanhOp>(node, UnaryFold::Tanh, times(sum, scalar(std::sqrt(2 / std::numbers::pi))));
  } else {
    throw Failure("approximate='" + kind + "' is neither 'none' nor 'tanh'");
  }
  const Value half = times(x, scalar(0.5));
  node.set(0, times(half, plus(inner, scalar(1))));
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

void castTo(Node &node) {
  const auto number = int(node.integerAttr("to", 0));
  const std::optional<DType> to = dtypeFromOnnx(number);
  if (!to)
    throw Failure("casts to " + onnxTypeName(number) +
                  ", which is not available yet; float32, float64, int32, int64 and bool are");
  node.set(0, cast(node, node.in(0), *to));
}

void castLike(Node &node) { node.set(0, cast(node, node.in(0), node.in(1).dtype)); }

void identity(Node &node) { node.set(0, node.anyIn(0)); }

} // namespace ds::import::ops
