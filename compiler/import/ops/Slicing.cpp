//===- Slicing.cpp - slices and splits -------------------------------------------------===//
#include "compiler/import/ops/Emit.h"
#include "compiler/import/ops/Ops.h"

#include <numeric>

namespace ds::import::ops {

namespace {
/// Lists of one slice, from attributes before opset 10.
struct SliceLists {
  std::vector<int64_t> starts, ends, axes, steps;
};

SliceLists sliceLists(Node &node, int64_t rank) {
  SliceLists lists;
  if (node.opset() < 10) {
    lists.starts = node.integersAttr("starts").value_or(std::vector<int64_t>());
    lists.ends = node.integersAttr("ends").value_or(std::vector<int64_t>());
  } else {
    lists.starts = node.integers(1, "starts");
    lists.ends = node.integers(2, "ends");
  }
  const size_t count = lists.starts.size();
  lists.axes.resize(count);
  std::iota(lists.axes.begin(), lists.axes.end(), 0);
  lists.steps.assign(count, 1);
  if (node.opset() < 10)
    lists.axes = node.integersAttr("axes").value_or(lists.axes);
  else if (node.has(3))
    lists.axes = node.integers(3, "axes");
  if (node.opset() >= 10 && node.has(4))
    lists.steps = node.integers(4, "steps");
  if (lists.ends.size() != count || lists.axes.size() != count || lists.steps.size() != count)
    throw Failure("the lists of starts, ends, axes and steps differ in length");
  (void)Node::axes(lists.axes, rank);
  return lists;
}
} // namespace

/// Starts and ends count from the end where negative, and are clamped to the dimension.
void sliceOf(Node &node) {
  const Value input = node.in(0);
  const SliceLists lists = sliceLists(node, input.rank());
  Shape starts(input.shape.size(), 0), sizes = input.shape, steps(input.shape.size(), 1);
  for (size_t i = 0; i < lists.starts.size(); ++i) {
    const size_t axis = Node::axis(lists.axes[i], input.rank());
    const int64_t size = input.shape[axis], step = lists.steps[i];
    if (step == 0 || step == std::numeric_limits<int64_t>::min())
      throw Failure("the step of axis " + std::to_string(axis) + " is " + std::to_string(step));
    auto clampTo = [&](int64_t at, int64_t low, int64_t high) {
      return std::clamp(at < 0 ? at + size : at, low, high); // at < 0 <= size: no overflow
    };
    const int64_t start =
        step > 0 ? clampTo(lists.starts[i], 0, size) : clampTo(lists.starts[i], 0, std::max<int64_t>(size - 1, 0));
    const int64_t end = step > 0 ? clampTo(lists.ends[i], 0, size) : clampTo(lists.ends[i], -1, size - 1);
    const int64_t distance = step > 0 ? end - start : start - end, stride = step > 0 ? step : -step;
    steps[axis] = step;
    sizes[axis] = distance <= 0 || size == 0 ? 0 : (distance - 1) / stride + 1;
    starts[axis] = sizes[axis] == 0 ? 0 : start;
    if (sizes[axis] <= 1)
      steps[axis] = 1;
  }
  node.set(0, slice(node, input, starts, sizes, steps));
}

/// Equal parts, the last one smaller where they do not come out even.
static std::vector<int64_t> evenSizes(int64_t whole, int64_t part) {
  std::vector<int64_t> sizes;
  for (int64_t at = 0; at < whole; at += part)
    sizes.push_back(std::min(part, whole - at));
  return sizes;
}

static std::vector<Value> splitAlong(Node &node, const Value &input, size_t axis, const std::vector<int64_t> &sizes) {
  int64_t at = 0;
  for (int64_t size : sizes)
    if (size < 0 || __builtin_add_overflow(at, size, &at))
      throw Failure("the parts " + toString(sizes) + " are impossible");
  if (at != input.shape[axis])
    throw Failure("the parts " + toString(sizes) + " do not add up to axis " + std::to_string(axis) + " of " +
                  toString(input.shape));
  std::vector<Value> parts;
  at = 0;
  for (int64_t size : sizes) {
    parts.push_back(sliceAlong(node, input, axis, at, size));
    at += size;
  }
  return parts;
}

void split(Node &node) {
  const Value input = node.in(0);
  const size_t axis = node.axisAttr("axis", 0, input.rank());
  std::optional<std::vector<int64_t>> sizes;
  if (node.opset() < 13)
    sizes = node.integersAttr("split");
  else if (node.has(1))
    sizes = node.integers(1, "parts");
  if (!sizes) {
    const int64_t count = node.integerAttr("num_outputs", int64_t(node.outputs()));
    const int64_t whole = input.shape[axis];
    if (count < 1 || count != int64_t(node.outputs()) || (node.opset() < 18 && whole % count != 0))
      throw Failure("axis " + std::to_string(axis) + " of " + toString(input.shape) + " does not split into " +
                    std::to_string(count) + " parts");
    sizes = evenSizes(whole, std::max<int64_t>((whole + count - 1) / count, 1));
    sizes->resize(size_t(count), 0);
  }
  if (sizes->size() != node.outputs())
    throw Failure("there are " + std::to_string(sizes->size()) + " parts for " + std::to_string(node.outputs()) +
                  " outputs");
  const std::vector<Value> parts = splitAlong(node, input, axis, *sizes);
  for (size_t i = 0; i < parts.size(); ++i)
    node.set(i, parts[i]);
}

/// PyTorch's split, chunk and unbind: a list that SequenceAt takes apart.
void splitToSequence(Node &node) {
  const Value input = node.in(0);
  const size_t axis = node.axisAttr("axis", 0, input.rank());
  const int64_t whole = input.shape[axis];
  constexpr int64_t maxParts = 4096;
  std::vector<int64_t> sizes;
  bool squeezes = false;
  if (!node.has(1)) {
    squeezes = node.integerAttr("keepdims", 1) == 0;
    if (whole <= maxParts)
      sizes.assign(size_t(whole), 1);
  } else if (node.in(1).rank() == 0) {
    const int64_t part = node.integer(1, "part");
    if (part < 1)
      throw Failure("the parts have size " + std::to_string(part));
    if ((whole + part - 1) / part <= maxParts)
      sizes = evenSizes(whole, part);
  } else {
    sizes = node.integers(1, "parts");
  }
  if (sizes.empty() || int64_t(sizes.size()) > maxParts)
    throw Failure("a split of axis " + std::to_string(axis) + " of " + toString(input.shape) +
                  " into no or more than " + std::to_string(maxParts) + " parts is not supported");
  std::vector<Value> parts = splitAlong(node, input, axis, sizes);
  for (Value &part : parts) {
    Shape shape = part.shape;
    if (squeezes)
      shape.erase(shape.begin() + long(axis));
    part = reshape(node, part, shape);
  }
  node.set(0, Value::sequence(std::move(parts)));
}

} // namespace ds::import::ops
