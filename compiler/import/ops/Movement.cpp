//===- Movement.cpp - reshapes, transposes, joins, pads -----------------------------------===//
#include "compiler/import/ops/Emit.h"
#include "compiler/import/ops/Ops.h"

#include <numeric>

namespace ds::import::ops {

/// 0 keeps the input's dimension unless allowzero; -1 is what remains.
void reshapeTo(Node &node) {
  const Value input = node.in(0);
  Shape shape = node.integers(1, "dimensions");
  const bool allowZero = node.integerAttr("allowzero", 0) != 0;
  std::optional<size_t> inferred;
  int64_t others = 1;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == 0 && !allowZero) {
      if (i >= input.shape.size())
        throw Failure("dimension " + std::to_string(i) + " of the new shape " + toString(shape) +
                      " is 0, which copies the input's, but the input is " + toString(input.shape));
      shape[i] = input.shape[i];
    }
    if (shape[i] == -1) {
      if (inferred)
        throw Failure("the new shape " + toString(shape) + " leaves two dimensions open");
      inferred = i;
    } else if (shape[i] < -1 || __builtin_mul_overflow(others, shape[i], &others)) {
      throw Failure("the new shape " + toString(shape) + " is impossible");
    }
  }
  if (inferred) {
    const int64_t count = elementCount(input.shape);
    if (others == 0 || count % others != 0)
      throw Failure("a tensor of shape " + toString(input.shape) + " has no view of shape " + toString(shape));
    shape[*inferred] = count / others;
  }
  node.set(0, reshape(node, input, shape));
}

/// Two dimensions: those before `axis`, and the rest.
void flatten(Node &node) {
  const Value input = node.in(0);
  int64_t axis = node.integerAttr("axis", 1);
  if (axis < -input.rank() || axis > input.rank())
    throw Failure("axis " + std::to_string(axis) + " is outside a tensor of rank " + std::to_string(input.rank()));
  axis += axis < 0 ? input.rank() : 0;
  int64_t rows = 1, columns = 1;
  for (int64_t i = 0; i < input.rank(); ++i)
    (i < axis ? rows : columns) *= input.shape[size_t(i)];
  node.set(0, reshape(node, input, {rows, columns}));
}

/// Axes are an attribute before opset 13.
static std::optional<std::vector<int64_t>> axesOf(Node &node) {
  if (node.opset() < 13)
    return node.integersAttr("axes");
  return node.has(1) ? std::optional(node.integers(1, "axes")) : std::nullopt;
}

void squeeze(Node &node) {
  const Value input = node.in(0);
  std::optional<std::vector<int64_t>> list = axesOf(node);
  std::vector<int64_t> axes;
  if (list)
    axes = Node::axes(*list, input.rank());
  Shape shape;
  for (size_t i = 0; i < input.shape.size(); ++i) {
    const bool removed = list ? std::binary_search(axes.begin(), axes.end(), int64_t(i)) : input.shape[i] == 1;
    if (removed && input.shape[i] != 1)
      throw Failure("axis " + std::to_string(i) + " of " + toString(input.shape) + " is not 1");
    if (!removed)
      shape.push_back(input.shape[i]);
  }
  node.set(0, reshape(node, input, shape));
}

void unsqueeze(Node &node) {
  const Value input = node.in(0);
  const std::optional<std::vector<int64_t>> list = axesOf(node);
  if (!list)
    throw Failure("the axes are missing");
  const std::vector<int64_t> axes = Node::axes(*list, input.rank() + int64_t(list->size()));
  Shape shape = input.shape;
  for (int64_t axis : axes)
    shape.insert(shape.begin() + axis, 1);
  node.set(0, reshape(node, input, shape));
}

void transposeTo(Node &node) {
  const Value input = node.in(0);
  std::vector<int64_t> reversed(input.shape.size());
  std::iota(reversed.rbegin(), reversed.rend(), 0);
  const std::vector<int64_t> permutation = node.integersAttr("perm").value_or(reversed);
  std::vector<int64_t> sorted = permutation;
  std::sort(sorted.rbegin(), sorted.rend());
  if (sorted != reversed)
    throw Failure("perm " + toString(permutation) + " is no permutation of the dimensions of " + toString(input.shape));
  node.set(0, transpose(node, input, permutation));
}

/// The shapes broadcast: a 1 in the operand keeps the input's dimension.
void expand(Node &node) {
  const Value input = node.in(0);
  const Shape shape = node.integers(1, "dimensions");
  checkedElements(shape, input.dtype, "the new shape");
  node.set(0, broadcastTo(node, input, broadcastShape(input.shape, shape)));
}

void tile(Node &node) {
  const Value input = node.in(0);
  const std::vector<int64_t> repeats = node.integers(1, "repeats");
  if (repeats.size() != input.shape.size())
    throw Failure("there are " + std::to_string(repeats.size()) + " repeats for a tensor of rank " +
                  std::to_string(input.rank()));
  // [d0, d1] -> [1, d0, 1, d1] -> [r0, d0, r1, d1] -> [r0 d0, r1 d1]
  Shape apart, repeated, shape;
  for (size_t i = 0; i < repeats.size(); ++i) {
    int64_t size = 0;
    if (repeats[i] < 0 || __builtin_mul_overflow(repeats[i], input.shape[i], &size))
      throw Failure("the repeats " + toString(repeats) + " are impossible");
    shape.push_back(size);
    if (repeats[i] != 1) {
      apart.push_back(1);
      repeated.push_back(repeats[i]);
    }
    apart.push_back(input.shape[i]);
    repeated.push_back(input.shape[i]);
  }
  checkedElements(shape, input.dtype, "the result");
  node.set(0, reshape(node, broadcastTo(node, reshape(node, input, apart), repeated), shape));
}

void concat(Node &node) {
  const Value first = node.in(0);
  const size_t axis = node.axisAttr("axis", 0, first.rank());
  std::vector<Value> inputs;
  std::vector<Constant> constants;
  Shape shape = first.shape;
  shape[axis] = 0;
  for (size_t i = 0; i < node.inputs(); ++i) {
    const Value &input = node.in(i);
    Shape expected = first.shape;
    if (input.rank() == first.rank())
      expected[axis] = input.shape[axis];
    if (input.dtype != first.dtype || input.shape != expected)
      throw Failure("inputs 0 and " + std::to_string(i) + ", " + std::string(ds::name(first.dtype)) + " " +
                    toString(first.shape) + " and " + std::string(ds::name(input.dtype)) + " " + toString(input.shape) +
                    ", cannot be joined along axis " + std::to_string(axis));
    shape[axis] += input.shape[axis];
    checkedElements(shape, first.dtype, "the result");
    if (input.shape[axis] == 0 && node.inputs() > 1)
      continue;
    inputs.push_back(input);
    if (const std::optional<Constant> constant = node.graph().known(input))
      constants.push_back(*constant);
  }
  if (inputs.empty() || inputs.size() == 1) {
    node.set(0, inputs.empty() ? first : inputs[0]);
    return;
  }
  if (constants.size() == inputs.size()) {
    node.set(0, Value::of(foldConcat(constants, axis, node.budget())));
    return;
  }
  llvm::SmallVector<mlir::Value> operands;
  for (const Value &input : inputs)
    operands.push_back(node.operand(input));
  node.set(0, Value::of(node.create<train::ConcatOp>(operands, {node.number("axis", int64_t(axis))}).getResult()));
}

static Constant padValue(Node &node, DType dtype) {
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

/// Negative pads remove; they come first, as a slice.
void pad(Node &node) {
  Value input = node.in(0);
  if (const std::string mode = node.stringAttr("mode", "constant"); mode != "constant")
    throw Failure("mode '" + mode + "' is not available yet; 'constant' is");
  const std::vector<int64_t> pads =
      node.opset() < 11 ? node.integersAttr("pads").value_or(std::vector<int64_t>()) : node.integers(1, "pads");
  std::vector<int64_t> axes(input.shape.size());
  std::iota(axes.begin(), axes.end(), 0);
  if (node.opset() >= 18 && node.has(3)) {
    axes = node.integers(3, "axes");
    (void)Node::axes(axes, input.rank());
  }
  if (pads.size() != 2 * axes.size())
    throw Failure("there are " + std::to_string(pads.size()) + " pads for " + std::to_string(axes.size()) + " axes");
  const size_t rank = input.shape.size();
  Shape low(rank, 0), high(rank, 0), starts(rank, 0), sizes = input.shape, result;
  for (size_t i = 0; i < axes.size(); ++i) {
    const size_t axis = Node::axis(axes[i], input.rank());
    const int64_t before = pads[i], after = pads[i + axes.size()];
    constexpr int64_t most = int64_t(1) << 40;
    if (before > most || after > most || before < -sizes[axis] || after < -sizes[axis] ||
        std::min<int64_t>(before, 0) + std::min<int64_t>(after, 0) < -sizes[axis])
      throw Failure("pads of " + std::to_string(before) + " and " + std::to_string(after) + " do not fit axis " +
                    std::to_string(axis) + " of " + toString(input.shape));
    low[axis] = std::max<int64_t>(before, 0);
    high[axis] = std::max<int64_t>(after, 0);
    starts[axis] = std::max<int64_t>(-before, 0);
    sizes[axis] += std::min<int64_t>(before, 0) + std::min<int64_t>(after, 0);
  }
  input = slice(node, input, starts, sizes, Shape(rank, 1));
  result = input.shape;
  for (size_t i = 0; i < rank; ++i)
    result[i] += low[i] + high[i];
  checkedElements(result, input.dtype, "the result");
  const Constant value = padValue(node, input.dtype);
  if (result == input.shape) {
    node.set(0, input);
  } else if (const std::optional<Constant> constant = node.graph().known(input)) {
    node.set(0, Value::of(foldPad(*constant, low, high, value, node.budget())));
  } else {
    auto op = node.create<train::PadOp>({node.operand(input)}, {node.list("low", low), node.list("high", high),
                                                                node.list("interior", Shape(rank, 0)),
                                                                node.real("value", value.firstAsDouble())});
    node.set(0, Value::of(op.getResult()));
  }
}

/// Keeps one side of the diagonal k of the last two dimensions.
void trilu(Node &node) {
  const Value input = node.in(0);
  if (input.rank() < 2)
    throw Failure("a tensor of rank " + std::to_string(input.rank()) + " has no triangle");
  int64_t k = node.has(1) ? node.integer(1, "diagonal") : 0;
  const int64_t rows = input.shape[input.shape.size() - 2], columns = input.shape.back();
  k = std::clamp(k, -rows - 1, columns + 1);
  const Constant mask = triangle(rows, columns, k, node.integerAttr("upper", 1) != 0, node.budget());
  const Constant zero = foldCast(Constant::integer(0), input.dtype, node.budget());
  node.set(0, select(node, Value::of(mask), input, Value::of(zero)));
}

} // namespace ds::import::ops
