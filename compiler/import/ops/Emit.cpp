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
      node.create<train::TransposeOp>({node.operand(input)}, {node.list("permutation", permutation)}).getResult());
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
    if (steps[i] < 1 && sizes[i] > 1)
      throw Failure("a negative step is supported for values that are known while compiling only");
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

Value cast(Node &node, const Value &input, DType to) {
  if (input.dtype == to)
    return input;
  if (const std::optional<Constant> constant = node.graph().known(input))
    return Value::of(foldCast(*constant, to, node.budget()));
  const auto type = mlir::TypeAttr::get(elementType(node.builder().getContext(), to));
  return Value::of(
      node.create<train::CastOp>({node.operand(input)}, {node.builder().getNamedAttr("element_type", type)})
          .getResult());
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

Value reduce(Node &node, ReduceFold kind, const Value &input, const std::vector<int64_t> &axes, bool keepDims) {
  Shape kept = input.shape, removed;
  for (int64_t axis : axes)
    kept[size_t(axis)] = 1;
  for (size_t i = 0; i < kept.size(); ++i)
    if (!std::binary_search(axes.begin(), axes.end(), int64_t(i)))
      removed.push_back(kept[i]);
  const Shape &shape = keepDims ? kept : removed;
  if (const std::optional<Constant> constant = node.graph().known(input))
    if (std::optional<Constant> folded = foldReduce(kind, *constant, axes, node.budget()))
      return reshape(node, Value::of(std::move(*folded)), shape);
  if (axes.empty())
    return input;
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
  throw Failure("a product over values that the model is fed or trains is not supported");
}

} // namespace ds::import
