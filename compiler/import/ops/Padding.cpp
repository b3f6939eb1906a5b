//===- Padding.cpp - values around a tensor -----------------------------------------------------===//
#include "compiler/import/ops/Emit.h"
#include "compiler/import/ops/Ops.h"

#include <numeric>

namespace ds::import::ops {
namespace {

/// What to add before and after each dimension, and what to take away.
struct Pads {
  Shape low, high;     // added, at least 0
  Shape starts, sizes; // of what is left
};

Constant padValue(Node &node, DType dtype) {
  if (node.opset() < 11)
    return floatScalar(dtype, node.floatAttr("value", 0)).constant;
  if (node.has(2)) {
    const Constant value = node.known(2, "value");
    if (value.elements() != 1)
      throw Failure("the value must be a scalar");
    return foldCast(value, dtype, node.budget());
  }
  return foldCast(Constant::integer(0), dtype, node.budget());
}

/// One number before and one after each axis that is padded; before opset 2 the attribute has another name.
std::vector<int64_t> padList(Node &node) {
  if (node.opset() >= 11)
    return node.integers(1, "pads");
  return node.integersAttr(node.opset() < 2 ? "paddings" : "pads").value_or(std::vector<int64_t>());
}

/// Negative pads remove.
Pads padsOf(Node &node, const Shape &shape) {
  const std::vector<int64_t> pads = padList(node);
  const auto rank = int64_t(shape.size());
  std::vector<int64_t> axes(shape.size());
  std::iota(axes.begin(), axes.end(), 0);
  if (node.opset() >= 18 && node.has(3)) {
    axes = node.integers(3, "axes");
    (void)Node::axes(axes, rank);
  }
  if (pads.size() != 2 * axes.size())
    throw Failure("there are " + std::to_string(pads.size()) + " pads for " + std::to_string(axes.size()) + " axes");
  const Shape none(shape.size(), 0);
  Pads result{none, none, none, shape};
  for (size_t i = 0; i < axes.size(); ++i) {
    const size_t axis = Node::axis(axes[i], rank);
    const int64_t before = pads[i], after = pads[i + axes.size()], size = shape[axis];
    constexpr int64_t most = int64_t(1) << 40;
    if (before > most || after > most || before < -size || after < -size ||
        std::min<int64_t>(before, 0) + std::min<int64_t>(after, 0) < -size)
      throw Failure("pads of " + std::to_string(before) + " and " + std::to_string(after) + " do not fit axis " +
                    std::to_string(axis) + " of " + toString(shape));
    result.low[axis] = std::max<int64_t>(before, 0);
    result.high[axis] = std::max<int64_t>(after, 0);
    result.starts[axis] = std::max<int64_t>(-before, 0);
    result.sizes[axis] += std::min<int64_t>(before, 0) + std::min<int64_t>(after, 0);
  }
  return result;
}

Value padConstant(Node &node, const Value &input, const Pads &pads) {
  const Constant value = padValue(node, input.dtype);
  if (const std::optional<Constant> constant = node.graph().known(input))
    return Value::of(foldPad(*constant, pads.low, pads.high, value, node.budget()));
  auto op = node.create<train::PadOp>({node.operand(input)}, {node.list("low", pads.low), node.list("high", pads.high),
                                                              node.list("interior", Shape(input.shape.size(), 0)),
                                                              node.real("value", value.firstAsDouble())});
  return Value::of(op.getResult());
}

/// The element of a dimension of `size` that stands at `position`, which may lie outside.
int64_t sourceOf(const std::string &mode, int64_t position, int64_t size) {
  if (mode == "edge")
    return std::clamp<int64_t>(position, 0, size - 1);
  if (mode == "wrap")
    return (position % size + size) % size;
  const int64_t period = std::max<int64_t>(2 * (size - 1), 1); // reflect: there and back without the ends twice
  const int64_t at = (position % period + period) % period;
  return at < size ? at : period - at;
}

/// Each padded dimension is a gather by indices that are known.
Value padFromInside(Node &node, Value input, const Pads &pads, const std::string &mode) {
  for (size_t axis = 0; axis < pads.low.size(); ++axis) {
    const int64_t size = input.shape[axis], low = pads.low[axis], high = pads.high[axis];
    if (low == 0 && high == 0)
      continue;
    if (size == 0)
      throw Failure("mode '" + mode + "' has nothing to repeat along axis " + std::to_string(axis) + " of " +
                    toString(input.shape));
    node.budget().charge(low + size + high);
    std::vector<int64_t> indices;
    for (int64_t position = -low; position < size + high; ++position)
      indices.push_back(sourceOf(mode, position, size));
    input = gatherAlong(node, input, Value::of(Constant::integers(indices)), axis);
  }
  return input;
}

} // namespace

void pad(Node &node) {
  const std::string mode = node.stringAttr("mode", "constant");
  if (mode != "constant" && mode != "edge" && mode != "reflect" && mode != "wrap")
    throw Failure("mode '" + mode + "' is none of 'constant', 'edge', 'reflect' and 'wrap'");
  const Pads pads = padsOf(node, node.in(0).shape);
  const Value input = slice(node, node.in(0), pads.starts, pads.sizes, Shape(pads.starts.size(), 1));
  Shape result = input.shape;
  for (size_t i = 0; i < result.size(); ++i)
    result[i] += pads.low[i] + pads.high[i];
  checkedElements(result, input.dtype, "the result");
  if (result == input.shape)
    node.set(0, input);
  else
    node.set(0, mode == "constant" ? padConstant(node, input, pads) : padFromInside(node, input, pads, mode));
}

} // namespace ds::import::ops
