//===- Movement.cpp - reshapes, transposes, joins -----------------------------------===//
#include "compiler/import/ops/Emit.h"
#include "compiler/import/ops/Ops.h"

#include <numeric>

namespace ds::import::ops {

/// 0 keeps the input's dimension unless allowzero; -1 is what remains.
void reshapeTo(Node &node) {
  const Value input = node.in(0);
  Shape shape = node.opset() < 5 ? node.integersAttr("shape").value_or(Shape()) : node.integers(1, "dimensions");
  shape = node.graph().openedShape(node.proto(), std::move(shape));
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
  std::vector<Value> inputs;
  for (size_t i = 0; i < node.inputs(); ++i)
    inputs.push_back(node.in(i));
  const size_t axis = node.axisAttr("axis", node.opset() < 4 ? 1 : 0, node.in(0).rank());
  if (node.graph().opensBatch()) // a token that all samples begin with
    for (size_t d = 0; d < inputs[0].shape.size(); ++d) {
      int64_t most = 1;
      for (const Value &input : inputs)
        most = std::max(most, d < input.shape.size() ? input.shape[d] : 1);
      for (Value &input : inputs)
        if (d != axis && d < input.shape.size() && input.shape[d] == 1 && most > 1) {
          Shape shape = input.shape;
          shape[d] = most;
          input = broadcastTo(node, input, shape);
        }
    }
  node.set(0, join(node, inputs, axis));
}

/// The input [N, C, H, W] seen in more dimensions, permuted and seen as `shape`.
static void rearrange(Node &node, const Shape &apart, const std::vector<int64_t> &permutation, const Shape &shape) {
  node.set(0, reshape(node, transpose(node, reshape(node, node.in(0), apart), permutation), shape));
}

static int64_t blockSize(Node &node) {
  const int64_t block = node.integerAttr("blocksize", 0);
  if (node.in(0).rank() != 4 || block < 1 || block > 65536)
    throw Failure("needs a tensor of rank 4 and a block size of at least 1, not " + toString(node.in(0).shape) +
                  " and " + std::to_string(block));
  return block;
}

/// Channels become blocks of pixels: mode DCR has the block before the channel that remains, CRD behind it.
void depthToSpace(Node &node) {
  const int64_t block = blockSize(node);
  const Shape x = node.in(0).shape;
  const int64_t depth = x[1] / (block * block);
  const std::string mode = node.stringAttr("mode", "DCR");
  if (mode != "DCR" && mode != "CRD")
    throw Failure("mode '" + mode + "' is neither 'DCR' nor 'CRD'");
  if (x[1] % (block * block) != 0)
    throw Failure("the " + std::to_string(x[1]) + " channels are no multiple of the block's " +
                  std::to_string(block * block) + " pixels");
  const Shape shape{x[0], depth, x[2] * block, x[3] * block};
  if (mode == "DCR")
    rearrange(node, {x[0], block, block, depth, x[2], x[3]}, {0, 3, 4, 1, 5, 2}, shape);
  else
    rearrange(node, {x[0], depth, block, block, x[2], x[3]}, {0, 1, 4, 2, 5, 3}, shape);
}

void spaceToDepth(Node &node) {
  const int64_t block = blockSize(node);
  const Shape x = node.in(0).shape;
  if (x[2] % block != 0 || x[3] % block != 0)
    throw Failure("an image of " + std::to_string(x[2]) + " by " + std::to_string(x[3]) + " has no whole blocks of " +
                  std::to_string(block));
  const int64_t rows = x[2] / block, columns = x[3] / block;
  rearrange(node, {x[0], x[1], rows, block, columns, block}, {0, 3, 5, 1, 2, 4},
            {x[0], x[1] * block * block, rows, columns});
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
