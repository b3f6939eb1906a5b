//===- Slicing.cpp - slices, splits, gathers -------------------------------------------------===//
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

void sequenceAt(Node &node) {
  const Value &list = node.anyIn(0);
  if (list.kind != Value::Kind::Sequence)
    throw Failure("input 0 is no sequence");
  const int64_t index = node.integer(1, "index");
  node.set(0, list.elements[Node::axis(index, int64_t(list.elements.size()))]);
}

/// Indices from the end counted from the start; throws where one is out of range.
static std::vector<int64_t> normalized(std::vector<int64_t> indices, int64_t size, size_t axis) {
  for (int64_t &index : indices) {
    if (index < -size || index >= size)
      throw Failure("index " + std::to_string(index) + " is outside axis " + std::to_string(axis) + " of size " +
                    std::to_string(size));
    index += index < 0 ? size : 0;
  }
  return indices;
}

/// Known indices that run on at one step are a slice, e.g. positions 0, 1, .. S - 1 into a position table.
static std::optional<int64_t> constantStep(const std::vector<int64_t> &indices) {
  if (indices.empty())
    return std::nullopt;
  const int64_t step = indices.size() == 1 ? 1 : indices[1] - indices[0];
  for (size_t i = 1; i < indices.size(); ++i)
    if (indices[i] - indices[i - 1] != step)
      return std::nullopt;
  return step >= 1 ? std::optional(step) : std::nullopt;
}

static Shape gatherShape(const Shape &data, const Shape &indices, size_t axis) {
  Shape shape = data;
  shape.erase(shape.begin() + long(axis));
  shape.insert(shape.begin() + long(axis), indices.begin(), indices.end());
  return shape;
}

Value gatherAlong(Node &node, const Value &data, const Value &indices, size_t axis) {
  if (indices.dtype != DType::I64 && indices.dtype != DType::I32)
    throw Failure("the indices are " + std::string(ds::name(indices.dtype)) + " and must be int32 or int64");
  const Shape shape = gatherShape(data.shape, indices.shape, axis);
  checkedElements(shape, data.dtype, "the result");
  Value used = indices; // what the op reads; smaller than `indices` where these repeat
  if (const std::optional<Constant> known = node.graph().known(indices)) {
    const Shape distinct = known->distinctShape();
    const Constant once = known->view(distinct, known->strides(), known->offset());
    node.budget().charge(elementCount(distinct));
    const std::vector<int64_t> list = normalized(once.toIntegers(elementCount(distinct)), data.shape[axis], axis);
    Value result;
    if (const std::optional<Constant> constant = node.graph().known(data)) {
      result = Value::of(foldGather(*constant, list, distinct, axis, node.budget()));
    } else if (const std::optional<int64_t> step = constantStep(list)) {
      Shape starts(data.shape.size(), 0), sizes = data.shape, steps(data.shape.size(), 1);
      starts[axis] = list[0];
      sizes[axis] = int64_t(list.size());
      steps[axis] = *step;
      result = reshape(node, slice(node, data, starts, sizes, steps), gatherShape(data.shape, distinct, axis));
    }
    if (result.kind != Value::Kind::Absent)
      return broadcastTo(node, result, shape);
    std::vector<char> bytes(list.size() * sizeof(int64_t));
    std::memcpy(bytes.data(), list.data(), bytes.size());
    used = Value::of(Constant::dense(DType::I64, distinct, std::move(bytes)));
  }
  auto op =
      node.create<train::GatherOp>({node.operand(data), node.operand(used)}, {node.number("axis", int64_t(axis))});
  return fit(node, op.getResult(), shape);
}

void gather(Node &node) {
  const Value data = node.in(0), indices = node.in(1);
  node.set(0, gatherAlong(node, data, indices, node.axisAttr("axis", 0, data.rank())));
}

/// indices [.., k] address the first k dimensions: with known indices a gather of rows of data [d0 * .. * dk-1, ..].
void gatherNd(Node &node) {
  const Value data = node.in(0), indices = node.in(1);
  if (node.integerAttr("batch_dims", 0) != 0)
    throw Failure("batch_dims other than 0 are not available yet");
  if (data.rank() == 0 || indices.rank() == 0)
    throw Failure("data and indices must have at least one dimension");
  const int64_t depth = indices.shape.back();
  if (depth < 1 || depth > data.rank())
    throw Failure("the indices address " + std::to_string(depth) + " dimensions of a tensor of rank " +
                  std::to_string(data.rank()));
  const Constant known = node.known(1, "indices");
  node.budget().charge(known.elements());
  const std::vector<int64_t> list = known.toIntegers(known.elements());
  Shape rows(data.shape.begin(), data.shape.begin() + depth), inner(data.shape.begin() + depth, data.shape.end());
  std::vector<int64_t> flat;
  for (size_t at = 0; at < list.size();) {
    int64_t row = 0;
    for (int64_t dim = 0; dim < depth; ++dim, ++at)
      row = row * rows[size_t(dim)] + normalized({list[at]}, rows[size_t(dim)], size_t(dim))[0];
    flat.push_back(row);
  }
  std::vector<char> bytes(flat.size() * sizeof(int64_t));
  if (!flat.empty())
    std::memcpy(bytes.data(), flat.data(), bytes.size());
  const Shape indexShape(indices.shape.begin(), indices.shape.end() - 1);
  Shape dataShape = inner;
  dataShape.insert(dataShape.begin(), elementCount(rows));
  const Value index = Value::of(Constant::dense(DType::I64, indexShape, std::move(bytes)));
  node.set(0, gatherAlong(node, reshape(node, data, dataShape), index, 0));
}

void gatherElements(Node &node) {
  const Value data = node.in(0), indices = node.in(1);
  const size_t axis = node.axisAttr("axis", 0, data.rank());
  const std::optional<Constant> known = node.graph().known(data), index = node.graph().known(indices);
  if (!known || !index)
    throw Failure("is supported only where data and indices follow from shapes and constants");
  if (indices.rank() != data.rank() || ds::isFloat(indices.dtype))
    throw Failure("the indices must be integers of the data's rank");
  for (size_t i = 0; i < data.shape.size(); ++i)
    if (i != axis && indices.shape[i] > data.shape[i])
      throw Failure("the indices " + toString(indices.shape) + " do not fit the data " + toString(data.shape));
  node.budget().charge(index->elements());
  const std::vector<int64_t> list = normalized(index->toIntegers(index->elements()), data.shape[axis], axis);
  node.set(0, Value::of(foldGatherElements(*known, list, indices.shape, axis, node.budget())));
}

} // namespace ds::import::ops
