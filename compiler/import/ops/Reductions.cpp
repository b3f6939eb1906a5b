//===- Reductions.cpp - sums, means, extremes -------------------------------------------------===//
#include "compiler/import/ops/Conventions.h"
#include "compiler/import/ops/Ops.h"

#include <limits>
#include <numeric>

namespace ds::import::ops {
namespace {

/// What a reduction runs over.
struct Over {
  std::vector<int64_t> axes;
  bool keepDims;
};

/// Axes are an attribute before the given opset, an input from it on; none means all, or none at all if the node says
/// so.
Over over(Node &node, int64_t axesInputSince) {
  const int64_t rank = node.in(0).rank();
  std::vector<int64_t> list;
  if (node.opset() < axesInputSince)
    list = node.integersAttr("axes").value_or(list);
  else if (node.has(1))
    list = node.integers(1, "axes");
  std::vector<int64_t> axes = Node::axes(list, rank);
  if (axes.empty() && (node.opset() < axesInputSince || node.integerAttr("noop_with_empty_axes", 0) == 0)) {
    axes.resize(size_t(rank));
    std::iota(axes.begin(), axes.end(), 0);
  }
  return {axes, node.integerAttr("keepdims", 1) != 0};
}

void reduceOp(Node &node, ReduceFold kind, int64_t axesInputSince) {
  const Over where = over(node, axesInputSince);
  if (kind == ReduceFold::Mean)
    node.floatIn(0);
  node.set(0, reduce(node, kind, node.in(0), where.axes, where.keepDims));
}

/// Of equal ones the first, which alone gets the gradient, as in torch.max along a dimension; it stays as size 1.
Value firstExtreme(Node &node, const Value &input, int64_t axis, bool isMax) {
  const mlir::Value numbers = node.operand(input);
  const mlir::Value keys = isMax ? numbers : node.operand(Algebra(node).neg(input));
  const mlir::NamedAttribute along = node.number("axis", axis);
  const Value index = Value::of(node.create<train::ArgMaxOp>({keys}, {along}).getResult());
  const mlir::Value at = node.operand(reshape(node, index, reducedShape(input.shape, {axis}, /*keepDims=*/true)));
  return Value::of(node.create<train::GatherElementsOp>({numbers, at}, {along}).getResult());
}

/// Of bools: whether any is true, or all are. Of no floats: the infinity that every number passes.
void extremum(Node &node, ReduceFold kind) {
  const Value input = node.in(0);
  const Over where = over(node, 18);
  if (input.dtype == DType::Bool) {
    const Value numbers = reduce(node, kind, cast(node, input, DType::I32), where.axes, where.keepDims);
    return node.set(0, cast(node, numbers, DType::Bool));
  }
  const Shape shape = reducedShape(input.shape, where.axes, where.keepDims);
  const bool isMax = kind == ReduceFold::Max;
  if (elementCount(input.shape) > 0 && ds::isFloat(input.dtype) && where.axes.size() == 1 &&
      cameFrom(node.proto(), isMax ? "max.dim" : "min.dim"))
    return node.set(0, reshape(node, firstExtreme(node, input, where.axes[0], isMax), shape));
  if (elementCount(input.shape) > 0 || elementCount(shape) == 0 || !ds::isFloat(input.dtype))
    return node.set(0, reduce(node, kind, input, where.axes, where.keepDims));
  const double infinity = std::numeric_limits<double>::infinity();
  const Value none = floatScalar(input.dtype, isMax ? -infinity : infinity);
  node.set(0, broadcastTo(node, none, shape));
}

Value sumOver(Node &node, const Value &x, const Over &where) {
  return reduce(node, ReduceFold::Sum, x, where.axes, where.keepDims);
}

} // namespace

void reduceSum(Node &node) { reduceOp(node, ReduceFold::Sum, 13); }
void reduceMean(Node &node) { reduceOp(node, ReduceFold::Mean, 18); }
void reduceMax(Node &node) { extremum(node, ReduceFold::Max); }
void reduceMin(Node &node) { extremum(node, ReduceFold::Min); }
void reduceProd(Node &node) { reduceOp(node, ReduceFold::Prod, 18); }

void reduceL1(Node &node) { node.set(0, sumOver(node, Algebra(node).abs(node.in(0)), over(node, 18))); }

void reduceSumSquare(Node &node) {
  const Value x = node.in(0);
  node.set(0, sumOver(node, Algebra(node).mul(x, x), over(node, 18)));
}

/// The root of a sum of squares; its gradient at 0 is 0, as torch.linalg.norm's.
void reduceL2(Node &node) {
  const Algebra math(node);
  const Value x = node.floatIn(0), sum = sumOver(node, math.mul(x, x), over(node, 18));
  node.set(0, orZero(node, sum, [&](const Value &safe) { return math.sqrt(safe); }));
}

void reduceLogSum(Node &node) { node.set(0, Algebra(node).log(sumOver(node, node.floatIn(0), over(node, 18)))); }

/// m + log(sum(e^(x - m))), m the largest, or 0 where that is infinite.
void reduceLogSumExp(Node &node) {
  const Algebra math(node);
  const Value x = node.floatIn(0);
  const Over where = over(node, 18);
  const Value largest = reduce(node, ReduceFold::Max, x, where.axes, /*keepDims=*/true);
  const Value infinite = math.equal(math.abs(largest), std::numeric_limits<double>::infinity());
  const Value shift = math.choose(infinite, 0, largest);
  const Value sum = reduce(node, ReduceFold::Sum, math.exp(math.sub(x, shift)), where.axes, /*keepDims=*/true);
  const Value result = math.add(math.log(sum), shift);
  node.set(0, reshape(node, result, reducedShape(x.shape, where.axes, where.keepDims)));
}

} // namespace ds::import::ops
