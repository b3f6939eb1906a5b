//===- Shapes.cpp - constants, shapes, ranges ----------------------------------------------===//
#include "compiler/import/ops/Emit.h"
#include "compiler/import/ops/Ops.h"

#include <cmath>

namespace ds::import::ops {

static Constant tensorConstant(Node &node, const onnx::TensorProto &tensor) {
  return literalConstant(tensor, "the constant", node.budget());
}

/// One of value, value_float(s), value_int(s); strings and sparse tensors have no use in training.
void constant(Node &node) {
  if (const onnx::AttributeProto *tensor = node.attribute("value", 4))
    return node.set(0, Value::of(tensorConstant(node, tensor->t())));
  if (const onnx::AttributeProto *value = node.attribute("value_float", 1))
    return node.set(0, Value::of(Constant::scalar(DType::F32, value->f())));
  if (const onnx::AttributeProto *value = node.attribute("value_int", 2))
    return node.set(0, Value::of(Constant::integer(value->i())));
  if (const auto values = node.integersAttr("value_ints"))
    return node.set(0, Value::of(Constant::integers(*values)));
  if (const onnx::AttributeProto *values = node.attribute("value_floats", 6)) {
    std::vector<char> bytes(size_t(values->floats_size()) * sizeof(float));
    if (!bytes.empty())
      std::memcpy(bytes.data(), values->floats().data(), bytes.size());
    return node.set(0, Value::of(Constant::dense(DType::F32, {values->floats_size()}, std::move(bytes))));
  }
  throw Failure("the constant holds no number; strings and sparse tensors are not supported");
}

void constantOfShape(Node &node) {
  const Shape shape = node.integers(0, "dimensions");
  Constant value = Constant::scalar(DType::F32, 0.0f);
  if (const onnx::AttributeProto *tensor = node.attribute("value", 4))
    value = tensorConstant(node, tensor->t());
  if (value.elements() != 1)
    throw Failure("the value must have one element");
  const int64_t elements = checkedElements(shape, value.dtype(), "the result");
  node.set(0, Value::of(elements == 0 ? Constant::dense(value.dtype(), shape, {})
                                      : value.view(shape, Shape(shape.size(), 0), value.offset())));
}

/// start and end (opset 15) are clamped, not checked.
void shape(Node &node) {
  const Value &input = node.in(0);
  const int64_t rank = input.rank();
  auto clampTo = [&](int64_t at) { return std::clamp<int64_t>(at < 0 ? at + rank : at, 0, rank); };
  const int64_t start = clampTo(node.integerAttr("start", 0)), end = clampTo(node.integerAttr("end", rank));
  std::vector<int64_t> dims;
  for (int64_t i = start; i < end; ++i)
    dims.push_back(input.shape[size_t(i)]);
  node.set(0, Value::of(Constant::integers(dims)));
}

void size(Node &node) { node.set(0, Value::of(Constant::integer(elementCount(node.in(0).shape)))); }

/// Ones on diagonal k of a matrix shaped like the input, whose type it has unless the node says another.
void eyeLike(Node &node) {
  const Value &like = node.in(0);
  if (like.rank() != 2)
    throw Failure("the input must be a matrix, not " + toString(like.shape));
  const auto number = int(node.integerAttr("dtype", 0));
  const std::optional<DType> dtype = number == 0 ? like.dtype : knownTypeFromOnnx(number);
  if (!dtype)
    throw Failure("the result would be " + onnxTypeName(number) + ", which is not available yet");
  const int64_t rows = like.shape[0], columns = like.shape[1];
  const int64_t k = std::clamp(node.integerAttr("k", 0), -rows - 1, columns + 1);
  const Constant above = triangle(rows, columns, k, true, node.budget());
  const Constant below = triangle(rows, columns, k, false, node.budget());
  const std::optional<Constant> eye = foldBinary(BinaryFold::And, above, below, like.shape, node.budget());
  node.set(0, Value::of(foldCast(*eye, *dtype, node.budget())));
}

void range(Node &node) {
  const Constant start = node.known(0, "bounds"), limit = node.known(1, "bounds"), delta = node.known(2, "bounds");
  if (start.dtype() != limit.dtype() || start.dtype() != delta.dtype() || start.dtype() == DType::Bool)
    throw Failure("start, limit and delta must be numbers of one type");
  if (start.elements() != 1 || limit.elements() != 1 || delta.elements() != 1)
    throw Failure("start, limit and delta must be scalars");
  double count = 0;
  if (ds::isFloat(start.dtype())) {
    count = std::ceil((limit.firstAsDouble() - start.firstAsDouble()) / delta.firstAsDouble());
  } else {
    const int64_t from = start.toIntegers()[0], to = limit.toIntegers()[0], step = delta.toIntegers()[0];
    if (step == 0)
      throw Failure("delta is 0");
    const __int128 distance = step > 0 ? __int128(to) - from : __int128(from) - to,
                   stride = step > 0 ? step : -__int128(step);
    const __int128 steps = (distance + stride - 1) / stride;
    count = double(steps);
  }
  if (!(count < 1e15))
    throw Failure("a range from " + text(start.firstAsDouble()) + " to " + text(limit.firstAsDouble()) + " by " +
                  text(delta.firstAsDouble()) + " does not end");
  node.set(0, Value::of(foldRange(start, delta, int64_t(std::max(count, 0.0)), node.budget())));
}

} // namespace ds::import::ops
