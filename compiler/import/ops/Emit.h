//===- Emit.h - what builders of ops share -----------------------------------------===//
//
// Each function folds what is known and creates an op for the rest; what changes nothing creates no op.
//===----------------------------------------------------------------------===//
#pragma once

#include "compiler/import/Node.h"

namespace ds::import {

Shape broadcastShape(const Shape &lhs, const Shape &rhs);

Value reshape(Node &node, const Value &input, const Shape &shape);
Value transpose(Node &node, const Value &input, const std::vector<int64_t> &permutation);
/// `input` repeated to exactly `shape`, to which it broadcasts.
Value broadcastTo(Node &node, const Value &input, const Shape &shape);
/// Steps may be negative.
Value slice(Node &node, const Value &input, const Shape &starts, const Shape &sizes, const Shape &steps);
/// numpy.take(data, indices, axis): a slice where known indices have one step.
Value gatherAlong(Node &node, const Value &data, const Value &indices, size_t axis);
/// `size` elements from `start` along one dimension.
Value sliceAlong(Node &node, const Value &input, size_t axis, int64_t start, int64_t size);
/// The values, of which there is at least one, behind each other along a dimension that they have.
Value join(Node &node, const std::vector<Value> &values, size_t axis);
inline Value cast(Node &node, const Value &input, DType to) { return node.cast(input, to); }
/// A scalar of a float type.
Value floatScalar(DType dtype, double value);
Value select(Node &node, const Value &condition, const Value &onTrue, const Value &onFalse);
/// `shape` without the dimensions `axes`, or with 1 in their places.
Shape reducedShape(const Shape &shape, const std::vector<int64_t> &axes, bool keepDims);
Value reduce(Node &node, ReduceFold kind, const Value &input, const std::vector<int64_t> &axes, bool keepDims);

/// A result that must have `shape` but may lack what constant operands only repeat.
Value fit(Node &node, mlir::Value result, const Shape &shape);

template <typename OpTy> Value binary(Node &node, BinaryFold kind, const Value &lhs, const Value &rhs) {
  if (lhs.dtype != rhs.dtype)
    throw Failure("the operands are " + std::string(ds::name(lhs.dtype)) + " and " + std::string(ds::name(rhs.dtype)) +
                  "; they must have one type");
  const Shape shape = broadcastShape(lhs.shape, rhs.shape);
  checkedElements(shape, lhs.dtype, "the result");
  const std::optional<Constant> a = node.graph().known(lhs), b = node.graph().known(rhs);
  if (a && b)
    if (std::optional<Constant> folded = foldBinary(kind, *a, *b, shape, node.budget()))
      return Value::of(std::move(*folded));
  mlir::Value x = node.graph().broadcastOperand(lhs, node.location());
  mlir::Value y = node.graph().broadcastOperand(rhs, node.location());
  return fit(node, node.create<OpTy>({x, y}).getResult(), shape);
}

template <typename OpTy> Value unary(Node &node, UnaryFold kind, const Value &input) {
  if (const std::optional<Constant> constant = node.graph().known(input))
    if (std::optional<Constant> folded = foldUnary(kind, *constant, node.budget()))
      return Value::of(std::move(*folded));
  return Value::of(node.create<OpTy>(mlir::ValueRange{node.operand(input)}).getResult());
}

} // namespace ds::import
