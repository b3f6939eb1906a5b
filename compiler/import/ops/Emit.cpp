//===- Emit.cpp - what builders of ops share -----------------------------------------===//
#include "compiler/import/ops/Emit.h"

#include <numeric>

namespace ds::import {

Shape broadcastShape(const Shape &lhs, const Shape &rhs) {
  const auto shape = train::broadcastShapes(lhs, rhs);
  if (!shape)
    throw Failure("the shapes " + toString(lhs) + " and " + toString(rhs) + " do not broadcast");
  return {shape->begin(), shape->end()};
}

Value fit(Node &node, mlir::Value result, const Shape &shape) {
  Value value = Value::of(result);
  if (value.shape == shape)
    return value;
  if (elementCount(value.shape) == elementCount(shape))
    return reshape(node, value, shape);
  return broadcastTo(node, value, shape);
}

Value reshape(Node &node, const Value &input, const Shape &shape) {
  if (input.shape == shape)
    return input;
  if (checkedElements(shape, input.dtype, "the result") != elementCount(input.shape))
    throw Failure("a tensor of shape " + toString(input.shape) + " has no view of shape " + toString(shape));
  if (const std::optional<Constant> constant = node.graph().known(input))
    return Value::of(foldReshape(*constant, shape, node.budget()));
  if (input.kind == Value::Kind::Runtime)
    if (auto before = input.value.getDefiningOp<train::ReshapeOp>()) // two in a row are one, or none
      return reshape(node, Value::of(before.getInput()), shape);
  return Value::of(node.create<train::ReshapeOp>({node.operand(input)}, {node.list("shape", shape)}).getResult());
}

Value transpose(Node &node, const Value &input, const std::vector<int64_t> &permutation) {
  // Moving only dimensions of size 1 past others is a reshape, and often nothing.
  std::vector<int64_t> moving;
  Shape shape;
  for (int64_t dim : permutation) {
    shape.push_back(input.shape[size_t(dim)]);
    if (shape.back() != 1)
      moving.push_back(dim);
  }
  if (const std::optional<Constant> constant = node.graph().known(input))
    return Value::of(foldTranspose(*constant, permutation));
  if (std::is_sorted(moving.begin(), moving.end()))
    return reshape(node, input, shape);
  return Value::of(
      node.create<train::TransposeOp>({node.operand(input)}, {node.list("perm", permutation)}).getResult());
}

Value broadcastTo(Node &node, const Value &input, const Shape &shape) {
  if (input.shape == shape)
    return input;
  if (broadcastShape(input.shape, shape) != shape)
    throw Failure("a tensor of shape " + toString(input.shape) + " does not expand to " + toString(shape));
  checkedElements(shape, input.dtype, "the result");
  if (const std::optional<Constant> constant = node.graph().known(input))
    return Value::of(constant->broadcast(shape));
  if (elementCount(input.shape) == elementCount(shape))
    return reshape(node, input, shape);
  return Value::of(node.create<train::BroadcastOp>({node.operand(input)}, {node.list("shape", shape)}).getResult());
}

Value slice(Node &node, const Value &input, const Shape &starts, const Shape &sizes, const Shape &steps) {
  if (sizes == input.shape && std::all_of(steps.begin(), steps.end(), [](int64_t step) { return step == 1; }))
    return input;
  if (const std::optional<Constant> constant = node.graph().known(input))
    return Value::of(foldSlice(*constant, starts, sizes, steps));
  for (size_t i = 0; i < steps.size(); ++i)
    if (steps[i] < 1 && sizes[i] > 1) { // backwards: each index by itself, and the rest as it was
      std::vector<int64_t> indices;
      for (int64_t k = 0; k < sizes[i]; ++k)
        indices.push_back(starts[i] + k * steps[i]);
      const Value reversed = gatherAlong(node, input, Value::of(Constant::integers(indices)), i);
      Shape newStarts = starts, newSteps = steps;
      newStarts[i] = 0;
      newSteps[i] = 1;
      return slice(node, reversed, newStarts, sizes, newSteps);
    }
  Shape positive = steps;
  for (int64_t &step : positive)
    step = std::max<int64_t>(step, 1);
  return Value::of(
      node.create<train::SliceOp>({node.operand(input)}, {node.list("starts", starts), node.list("sizes", sizes),
                                                          node.list("steps", positive)})
          .getResult());
}

Value sliceAlong(Node &node, const Value &input, size_t axis, int64_t start, int64_t size) {
  Shape starts(input.shape.size(), 0), sizes = input.shape;
  starts[axis] = start;
  sizes[axis] = size;
  return slice(node, input, starts, sizes, Shape(input.shape.size(), 1));
}

Value join(Node &node, const std::vector<Value> &values, size_t axis) {
  const Value &first = values.at(0);
  std::vector<Value> filled;
  std::vector<Constant> constants;
  Shape shape = first.shape;
  shape[axis] = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    const Value &value = values[i];
    Shape expected = first.shape;
    if (value.rank() == first.rank())
      expected[axis] = value.shape[axis];
    if (value.dtype != first.dtype || value.shape != expected)
      throw Failure("inputs 0 and " + std::to_string(i) + ", " + std::string(ds::name(first.dtype)) + " " +
                    toString(first.shape) + " and " + std::string(ds::name(value.dtype)) + " " + toString(value.shape) +
                    ", cannot be joined along axis " + std::to_string(axis));
    shape[axis] += value.shape[axis];
    checkedElements(shape, first.dtype, "the result");
    if (value.shape[axis] == 0)
      continue;
    filled.push_back(value);
    if (const std::optional<Constant> constant = node.graph().known(value))
      constants.push_back(*constant);
  }
  if (filled.size() <= 1)
    return filled.empty() ? first : filled[0];
  if (constants.size() == filled.size())
    return Value::of(foldConcat(constants, axis, node.budget()));
  llvm::SmallVector<mlir::Value> operands;
  for (const Value &value : filled)
    operands.push_back(node.operand(value));
  return Value::of(node.create<train::ConcatOp>(operands, {node.number("axis", int64_t(axis))}).getResult());
}

Value floatScalar(DType dtype, double value) {
  return Value::of(dtype == DType::F64 ? Constant::scalar(dtype, value) : Constant::scalar(DType::F32, float(value)));
}

Value select(Node &node, const Value &condition, const Value &onTrue, const Value &onFalse) {
  if (condition.dtype != DType::Bool)
    throw Failure("the condition is " + std::string(ds::name(condition.dtype)) + " and must be bool");
  if (onTrue.dtype != onFalse.dtype)
    throw Failure("the two branches are " + std::string(ds::name(onTrue.dtype)) + " and " +
                  std::string(ds::name(onFalse.dtype)) + "; they must have one type");
  const Shape shape = broadcastShape(condition.shape, broadcastShape(onTrue.shape, onFalse.shape));
  checkedElements(shape, onTrue.dtype, "the result");
  GraphImporter &graph = node.graph();
  const std::optional<Constant> c = graph.known(condition), a = graph.known(onTrue), b = graph.known(onFalse);
  if (c && a && b)
    return Value::of(graph.foldMask(*c, *a, *b, shape));
  auto use = [&](const Value &value) { return graph.broadcastOperand(value, node.location()); };
  return fit(node, node.create<train::SelectOp>({use(condition), use(onTrue), use(onFalse)}).getResult(), shape);
}

Shape reducedShape(const Shape &shape, const std::vector<int64_t> &axes, bool keepDims) {
  Shape result;
  for (size_t i = 0; i < shape.size(); ++i) {
    const bool isReduced = std::binary_search(axes.begin(), axes.end(), int64_t(i));
    if (!isReduced || keepDims)
      result.push_back(isReduced ? 1 : shape[i]);
  }
  return result;
}

/// The product along one dimension: halves are multiplied until one element is left, so that zeros need no care in the
/// gradient.
static Value productAlong(Node &node, Value input, size_t axis) {
  std::optional<Value> odd;
  auto times = [&](const Value &x, const Value &y) { return binary<train::MulOp>(node, BinaryFold::Mul, x, y); };
  for (int64_t size = input.shape[axis]; size > 1; size /= 2) {
    if (size % 2 != 0) {
      const Value last = sliceAlong(node, input, axis, size - 1, 1);
      odd = odd ? times(*odd, last) : last;
    }
    const Value low = sliceAlong(node, input, axis, 0, size / 2);
    input = times(low, sliceAlong(node, input, axis, size / 2, size / 2));
  }
  return odd ? times(input, *odd) : input;
}

Value reduce(Node &node, ReduceFold kind, const Value &input, const std::vector<int64_t> &axes, bool keepDims) {
  const Shape shape = reducedShape(input.shape, axes, keepDims);
  if (const std::optional<Constant> constant = node.graph().known(input))
    if (std::optional<Constant> folded = foldReduce(kind, *constant, axes, node.budget()))
      return reshape(node, Value::of(std::move(*folded)), shape);
  if (elementCount(shape) == elementCount(input.shape)) // each number is the only one
    return reshape(node, input, shape);
  const mlir::Value operand = node.operand(input);
  auto over = [&]<typename OpTy>(std::type_identity<OpTy>) {
    return Value::of(node.create<OpTy>({operand}, {node.list("axes", axes)}).getResult());
  };
  if (kind == ReduceFold::Sum)
    return reshape(node, over(std::type_identity<train::ReduceSumOp>()), shape);
  if (kind == ReduceFold::Mean)
    return reshape(node, over(std::type_identity<train::ReduceMeanOp>()), shape);
  if (kind == ReduceFold::Max)
    return reshape(node, over(std::type_identity<train::ReduceMaxOp>()), shape);
  if (kind == ReduceFold::Min) { // min(x) = -max(-x)
    Value negated = unary<train::NegOp>(node, UnaryFold::Neg, input);
    Value most = reduce(node, ReduceFold::Max, negated, axes, keepDims);
    return unary<train::NegOp>(node, UnaryFold::Neg, most);
  }
  Value product = input;
  for (int64_t axis : axes) {
    if (input.shape[size_t(axis)] == 0)
      throw Failure("a product over axis " + std::to_string(axis) + " of " + toString(input.shape) + " is empty");
    product = productAlong(node, product, size_t(axis));
  }
  return reshape(node, product, shape);
}

} // namespace ds::import
