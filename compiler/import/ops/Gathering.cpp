//===- Gathering.cpp - reading and writing by index --------------------------------------------===//
#include "compiler/import/Hazards.h"
#include "compiler/import/ops/Algebra.h"
#include "compiler/import/ops/Ops.h"

#include <numeric>

namespace ds::import {

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

namespace ops {

void gather(Node &node) {
  const Value data = node.in(0), indices = node.in(1);
  const Value result = gatherAlong(node, data, indices, node.axisAttr("axis", 0, data.rank()));
  if (const std::optional<int64_t> padding = paddingIndexOf(node.proto());
      padding && result.kind == Value::Kind::Runtime)
    if (auto op = result.value.getDefiningOp<train::GatherOp>())
      op->setAttr(train::paddingAttribute, node.builder().getI64IntegerAttr(*padding));
  node.set(0, result);
}

/// Throws where known indices leave `dims`, of which the last dimension of `indices` addresses one after another.
static void checkKnownIndices(Node &node, const Value &indices, const Shape &dims) {
  const std::optional<Constant> known = node.graph().known(indices);
  if (!known)
    return;
  node.budget().charge(known->elements());
  const std::vector<int64_t> list = known->toIntegers(known->elements());
  for (size_t i = 0; i < list.size(); ++i)
    (void)normalized({list[i]}, dims[i % dims.size()], i % dims.size());
}

/// Indices of a dimension of `size` that may count from its end.
static Value fromStart(Node &node, const Value &indices, int64_t size) {
  const Algebra math(node);
  const Value negative = math.less(indices, 0), moved = math.add(indices, double(size));
  return math.choose(negative, moved, indices);
}

/// indices [.., k] into `dims` as row-major positions [..]; those out of range become the number of positions, which
/// stops the run.
static Value linearIndices(Node &node, const Value &indices, const Shape &dims) {
  const Algebra math(node);
  const Shape shape(indices.shape.begin(), indices.shape.end() - 1);
  checkKnownIndices(node, indices, dims);
  Value linear, outside;
  for (size_t dim = 0; dim < dims.size(); ++dim) {
    const Value part = sliceAlong(node, indices, indices.shape.size() - 1, int64_t(dim), 1);
    const Value given = cast(node, reshape(node, part, shape), DType::I64);
    const Value index = fromStart(node, given, dims[dim]);
    const Value below = math.less(index, 0), beyond = math.greater(index, double(dims[dim] - 1));
    const Value leaves = math.either(below, beyond);
    outside = dim == 0 ? leaves : math.either(outside, leaves);
    linear = dim == 0 ? index : math.add(math.mul(linear, double(dims[dim])), index);
  }
  return math.choose(outside, double(elementCount(dims)), broadcastTo(node, linear, shape));
}

/// How many dimensions of `data` after the first `batch` the last dimension of `indices` addresses.
static size_t addressed(const Value &data, const Value &indices, int64_t batch) {
  if (data.rank() == 0 || indices.rank() == 0)
    throw Failure("data and indices must have at least one dimension");
  if (indices.dtype != DType::I64 && indices.dtype != DType::I32)
    throw Failure("the indices are " + std::string(ds::name(indices.dtype)) + " and must be int32 or int64");
  const int64_t depth = indices.shape.back();
  if (depth < 1 || depth > data.rank() - batch)
    throw Failure("the indices address " + std::to_string(depth) + " dimensions of a tensor of rank " +
                  std::to_string(data.rank()) + (batch > 0 ? " after " + std::to_string(batch) + " of the batch" : ""));
  return size_t(depth);
}

/// indices [b.., .., k] address the k dimensions of data after those of the batch: a gather of rows
/// [b * .. * d0 * .. * dk-1, ..].
void gatherNd(Node &node) {
  const Algebra math(node);
  const Value data = node.in(0), indices = node.in(1);
  const int64_t batch = node.integerAttr("batch_dims", 0);
  if (batch < 0 || batch >= std::min(data.rank(), indices.rank()) ||
      !std::equal(data.shape.begin(), data.shape.begin() + batch, indices.shape.begin()))
    throw Failure("batch_dims is " + std::to_string(batch) + ", but data " + toString(data.shape) + " and indices " +
                  toString(indices.shape) + " do not share so many dimensions");
  const auto from = data.shape.begin() + batch, to = from + int64_t(addressed(data, indices, batch));
  const Shape dims(from, to), batchShape(data.shape.begin(), from);
  Value linear = linearIndices(node, indices, dims);
  if (batch > 0) {
    std::vector<int64_t> begins(size_t(elementCount(batchShape)));
    for (size_t i = 0; i < begins.size(); ++i)
      begins[i] = int64_t(i) * elementCount(dims);
    Shape spread = batchShape;
    spread.resize(linear.shape.size(), 1);
    // What left its own batch must leave all of them.
    const Value outside = math.equal(linear, double(elementCount(dims)));
    const Value begin = reshape(node, Value::of(Constant::integers(begins)), spread);
    linear = math.choose(outside, double(elementCount(dims) * elementCount(batchShape)), math.add(linear, begin));
  }
  Shape rows{elementCount(batchShape) * elementCount(dims)};
  rows.insert(rows.end(), to, data.shape.end());
  node.set(0, gatherAlong(node, reshape(node, data, rows), linear, 0));
}

static void checkElementIndices(const Value &data, const Value &indices, size_t axis) {
  if (indices.rank() != data.rank() || (indices.dtype != DType::I64 && indices.dtype != DType::I32))
    throw Failure("the indices must be integers of the data's rank");
  for (size_t i = 0; i < data.shape.size(); ++i)
    if (i != axis && indices.shape[i] > data.shape[i])
      throw Failure("the indices " + toString(indices.shape) + " do not fit the data " + toString(data.shape));
}

void gatherElements(Node &node) {
  const Value data = node.in(0), indices = node.in(1);
  const size_t axis = node.axisAttr("axis", 0, data.rank());
  checkElementIndices(data, indices, axis);
  const std::optional<Constant> known = node.graph().known(data), index = node.graph().known(indices);
  if (index) {
    node.budget().charge(index->elements());
    const std::vector<int64_t> list = normalized(index->toIntegers(index->elements()), data.shape[axis], axis);
    if (known)
      return node.set(0, Value::of(foldGatherElements(*known, list, indices.shape, axis, node.budget())));
  }
  const mlir::Value from = node.operand(data), at = node.operand(indices);
  node.set(
      0, Value::of(node.create<train::GatherElementsOp>({from, at}, {node.number("axis", int64_t(axis))}).getResult()));
}

static train::ScatterReduction scatterReduction(Node &node) {
  const std::string name = node.stringAttr("reduction", "none");
  using Kind = train::ScatterReduction;
  const std::pair<const char *, Kind> kinds[] = {
      {"none", Kind::Replace}, {"add", Kind::Add}, {"mul", Kind::Mul}, {"max", Kind::Max}, {"min", Kind::Min}};
  for (const auto &[word, kind] : kinds)
    if (name == word)
      return kind;
  throw Failure("reduction '" + name + "' is none of 'none', 'add', 'mul', 'max' and 'min'");
}

static Value scatter(Node &node, const Value &data, const Value &indices, const Value &updates, size_t axis) {
  if (updates.dtype != data.dtype || updates.shape != indices.shape)
    throw Failure("updates " + std::string(ds::name(updates.dtype)) + " " + toString(updates.shape) + " must be " +
                  std::string(ds::name(data.dtype)) + " " + toString(indices.shape));
  const mlir::Value into = node.operand(data), at = node.operand(indices), what = node.operand(updates);
  auto reduction = train::ScatterReductionAttr::get(node.builder().getContext(), scatterReduction(node));
  auto op = node.create<train::ScatterElementsOp>(
      {into, at, what}, {node.number("axis", int64_t(axis)), node.builder().getNamedAttr("reduction", reduction)});
  return Value::of(op.getResult());
}

void scatterElements(Node &node) {
  const Value data = node.in(0), indices = node.in(1), updates = node.in(2);
  const size_t axis = node.axisAttr("axis", 0, data.rank());
  checkElementIndices(data, indices, axis);
  if (const std::optional<Constant> known = node.graph().known(indices))
    (void)normalized(known->toIntegers(known->elements()), data.shape[axis], axis);
  node.set(0, scatter(node, data, indices, updates, axis));
}

/// Rows of data [d0 * .. * dk-1, ..] meet the updates.
void scatterNd(Node &node) {
  const Value data = node.in(0), indices = node.in(1), updates = node.in(2);
  const auto end = data.shape.begin() + int64_t(addressed(data, indices, 0));
  const Shape dims(data.shape.begin(), end), inner(end, data.shape.end());
  Shape expected(indices.shape.begin(), indices.shape.end() - 1);
  const int64_t count = elementCount(expected), width = elementCount(inner);
  expected.insert(expected.end(), inner.begin(), inner.end());
  if (updates.shape != expected)
    throw Failure("updates " + toString(updates.shape) + " must have shape " + toString(expected));
  const Value rows = reshape(node, linearIndices(node, indices, dims), {count, 1});
  const Value wide = broadcastTo(node, rows, {count, width});
  const Value table = reshape(node, data, {elementCount(dims), width});
  const Value result = scatter(node, table, wide, reshape(node, updates, {count, width}), 0);
  node.set(0, reshape(node, result, data.shape));
}

//===-- searches --------------------------------------------------------------===//

/// 0, 1, .. size - 1 along `axis` of a tensor of rank `rank`.
static Value countAlong(Node &node, int64_t size, size_t axis, size_t rank) {
  Shape shape(rank, 1);
  shape[axis] = size;
  return reshape(node, Value::of(foldRange(Constant::integer(0), Constant::integer(1), size, node.budget())), shape);
}

static Value argMaxAlong(Node &node, const Value &input, size_t axis, bool last) {
  NamedAttrs attributes{node.number("axis", int64_t(axis))};
  if (last)
    attributes.push_back(node.builder().getNamedAttr("last", node.builder().getUnitAttr()));
  return Value::of(node.create<train::ArgMaxOp>({node.operand(input)}, attributes).getResult());
}

static void argExtremum(Node &node, bool isMax) {
  const Value input = node.in(0);
  const size_t axis = node.axisAttr("axis", 0, input.rank());
  const Value found =
      argMaxAlong(node, isMax ? input : Algebra(node).neg(input), axis, node.integerAttr("select_last_index", 0) != 0);
  node.set(0, reshape(node, found, reducedShape(input.shape, {int64_t(axis)}, node.integerAttr("keepdims", 1) != 0)));
}
void argMax(Node &node) { argExtremum(node, true); }
void argMin(Node &node) { argExtremum(node, false); }

/// 1 at the first of the largest along the axis, else 0; before opset 13 all dimensions from the axis on are one.
void hardmax(Node &node) {
  const Value input = node.floatIn(0);
  const bool old = node.opset() < 13;
  size_t axis = node.axisAttr("axis", old ? 1 : -1, input.rank());
  Value rows = input;
  if (old) {
    Shape flat{1, 1};
    for (size_t i = 0; i < input.shape.size(); ++i)
      flat[i < axis ? 0 : 1] *= input.shape[i];
    rows = reshape(node, input, flat);
    axis = 1;
  }
  const Value found = argMaxAlong(node, rows, axis, false);
  const Value at = reshape(node, found, reducedShape(rows.shape, {int64_t(axis)}, true));
  const Value hot = Algebra(node).equal(at, countAlong(node, rows.shape[axis], axis, rows.shape.size()));
  node.set(0, reshape(node, cast(node, hot, input.dtype), input.shape));
}

/// values[1] where the new dimension's index is the element, which may count from the end, else values[0].
void oneHot(Node &node) {
  const Algebra math(node);
  const Value given = cast(node, node.in(0), DType::I64), values = node.in(2);
  const Constant depths = foldCast(node.known(1, "depth"), DType::I64, node.budget());
  if (depths.elements() != 1 || values.shape != Shape{2})
    throw Failure("the depth must be one number and the values two");
  const int64_t depth = depths.toIntegers()[0];
  if (depth < 0)
    throw Failure("the depth is " + std::to_string(depth));
  const size_t axis = node.axisAttr("axis", -1, given.rank() + 1);
  Shape shape = given.shape;
  shape.insert(shape.begin() + int64_t(axis), 1);
  const Value indices = reshape(node, fromStart(node, given, depth), shape);
  const Value hot = math.equal(indices, countAlong(node, depth, axis, shape.size()));
  const Value off = reshape(node, sliceAlong(node, values, 0, 0, 1), {});
  const Value on = reshape(node, sliceAlong(node, values, 0, 1, 1), {});
  node.set(0, math.choose(hot, on, off));
}

/// The op looks along the last dimension.
void topK(Node &node) {
  const Value input = node.in(0);
  const size_t axis = node.axisAttr("axis", -1, input.rank());
  const int64_t k = node.opset() < 10 ? node.integerAttr("k", -1) : node.integer(1, "k");
  std::vector<int64_t> permutation(input.shape.size());
  std::iota(permutation.begin(), permutation.end(), 0);
  std::swap(permutation[axis], permutation.back()); // its own inverse
  NamedAttrs attributes{node.number("k", k)};
  if (node.integerAttr("largest", 1) == 0)
    attributes.push_back(node.builder().getNamedAttr("smallest", node.builder().getUnitAttr()));
  auto op = node.create<train::TopKOp>({node.operand(transpose(node, input, permutation))}, attributes);
  node.set(0, transpose(node, Value::of(op.getValues()), permutation));
  node.set(1, transpose(node, Value::of(op.getIndices()), permutation));
}

void cumSum(Node &node) {
  const Value input = node.in(0);
  if (input.dtype == DType::Bool)
    throw Failure("a running sum of bool does not exist");
  const size_t axis = Node::axis(node.integer(1, "axis"), input.rank());
  const bool exclusive = node.integerAttr("exclusive", 0) != 0, reverse = node.integerAttr("reverse", 0) != 0;
  if (const std::optional<Constant> known = node.graph().known(input))
    return node.set(0, Value::of(foldCumSum(*known, axis, exclusive, reverse, node.budget())));
  NamedAttrs attributes{node.number("axis", int64_t(axis))};
  if (exclusive)
    attributes.push_back(node.builder().getNamedAttr("exclusive", node.builder().getUnitAttr()));
  if (reverse)
    attributes.push_back(node.builder().getNamedAttr("reverse", node.builder().getUnitAttr()));
  node.set(0, Value::of(node.create<train::CumSumOp>({node.operand(input)}, attributes).getResult()));
}

} // namespace ops
} // namespace ds::import
