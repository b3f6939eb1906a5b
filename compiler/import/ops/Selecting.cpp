//===- Selecting.cpp - results whose size follows from values that are known while importing -----------------===//
#include "compiler/import/ops/Algebra.h"
#include "compiler/import/ops/Ops.h"

#include <map>
#include <numeric>

namespace ds::import::ops {

/// Input i, which must be known; else a sentence with the way out.
static Constant knownForSize(Node &node, size_t i, const char *wayOut) {
  if (std::optional<Constant> constant = node.graph().resolve(node.in(i)))
    return *constant;
  throw Failure("the size of its result depends on data ('" + node.proto().input(int(i)) +
                "'), and a plan is static; " + wayOut);
}

/// Where elements of a known tensor are not zero, as row-major positions.
static std::vector<int64_t> positionsOfNonZero(Node &node, const Constant &constant) {
  const Constant isSet = foldCast(constant, DType::Bool, node.budget());
  node.budget().charge(constant.elements());
  const std::vector<char> bytes = isSet.bytes(isSet.shape());
  std::vector<int64_t> positions;
  for (size_t i = 0; i < bytes.size(); ++i)
    if (bytes[i] != 0)
      positions.push_back(int64_t(i));
  return positions;
}

/// The slices along an axis, or the elements, whose condition holds.
void compress(Node &node) {
  Value input = node.in(0);
  const Constant condition = knownForSize(node, 1, "use a mask (torch.where) instead");
  if (condition.dtype() != DType::Bool || condition.shape().size() != 1)
    throw Failure("the condition must be a vector of bool");
  if (!node.attribute("axis", 2))
    input = reshape(node, input, {elementCount(input.shape)});
  const size_t axis = node.axisAttr("axis", 0, input.rank());
  if (condition.elements() > input.shape[axis])
    throw Failure("the condition has " + std::to_string(condition.elements()) + " elements for " +
                  std::to_string(input.shape[axis]) + " slices");
  const std::vector<int64_t> positions = positionsOfNonZero(node, condition);
  node.set(0, gatherAlong(node, input, Value::of(Constant::integers(positions)), axis));
}

/// The places of what is not zero, [rank, count].
void nonZero(Node &node) {
  const Constant input = knownForSize(node, 0, "use a mask (torch.where) instead");
  const std::vector<int64_t> positions = positionsOfNonZero(node, input);
  const auto count = int64_t(positions.size()), rank = int64_t(input.shape().size());
  node.budget().charge(count * std::max<int64_t>(rank, 1));
  std::vector<int64_t> places;
  for (int64_t dim = 0; dim < rank; ++dim) {
    const Shape inner(input.shape().begin() + dim + 1, input.shape().end());
    for (int64_t position : positions)
      places.push_back(position / elementCount(inner) % input.shape()[size_t(dim)]);
  }
  node.set(0, reshape(node, Value::of(Constant::integers(places)), {rank, count}));
}

//===-- Unique --------------------------------------------------------------------===//

/// Slices of equal elements: where each stands first, how often it occurs, and which one each slice is.
struct Distinct {
  std::vector<int64_t> first, counts, which;
};

template <typename T> static Distinct distinct(const std::vector<char> &bytes, int64_t slices, bool sorted) {
  const size_t width = bytes.size() / sizeof(T) / size_t(slices);
  auto slice = [&](int64_t i) {
    std::vector<T> elements(width);
    std::memcpy(elements.data(), bytes.data() + size_t(i) * width * sizeof(T), width * sizeof(T));
    return elements;
  };
  std::map<std::vector<T>, int64_t> places; // in order of their elements
  Distinct result;
  for (int64_t i = 0; i < slices; ++i) {
    std::vector<T> elements = slice(i);
    if (std::any_of(elements.begin(), elements.end(), [](T x) { return x != x; }))
      throw Failure("the input holds NaN, which equals nothing");
    const auto [found, isNew] = places.try_emplace(std::move(elements), int64_t(result.first.size()));
    if (isNew) {
      result.first.push_back(i);
      result.counts.push_back(0);
    }
    ++result.counts[size_t(found->second)];
    result.which.push_back(found->second);
  }
  if (!sorted)
    return result;
  Distinct ordered{{}, {}, std::vector<int64_t>(result.which.size())};
  std::vector<int64_t> rank(result.first.size());
  for (const auto &[elements, place] : places) {
    rank[size_t(place)] = int64_t(ordered.first.size());
    ordered.first.push_back(result.first[size_t(place)]);
    ordered.counts.push_back(result.counts[size_t(place)]);
  }
  for (size_t i = 0; i < result.which.size(); ++i)
    ordered.which[i] = rank[size_t(result.which[i])];
  return ordered;
}

static Distinct distinctSlices(const Constant &rows, bool sorted) {
  const std::vector<char> bytes = rows.bytes(rows.shape());
  const int64_t slices = rows.shape()[0];
  switch (rows.dtype()) {
  case DType::F32:
    return distinct<float>(bytes, slices, sorted);
  case DType::F64:
    return distinct<double>(bytes, slices, sorted);
  case DType::I32:
    return distinct<int32_t>(bytes, slices, sorted);
  case DType::I64:
    return distinct<int64_t>(bytes, slices, sorted);
  case DType::U16:
    return distinct<uint16_t>(bytes, slices, sorted);
  case DType::U32:
    return distinct<uint32_t>(bytes, slices, sorted);
  default:
    return distinct<uint8_t>(bytes, slices, sorted);
  }
}

/// The distinct slices along an axis, or elements: sorted, or as they come first. Where, which and how often.
void unique(Node &node) {
  Constant input = knownForSize(node, 0, "compute it before training");
  if (!node.attribute("axis", 2))
    input = foldReshape(input, {input.elements()}, node.budget());
  const size_t axis = node.axisAttr("axis", 0, int64_t(input.shape().size()));
  if (input.elements() == 0)
    throw Failure("the input " + toString(input.shape()) + " is empty");
  std::vector<int64_t> permutation(input.shape().size());
  std::iota(permutation.begin(), permutation.end(), 0);
  std::rotate(permutation.begin(), permutation.begin() + int64_t(axis), permutation.begin() + int64_t(axis) + 1);
  node.budget().charge(input.elements());
  const Distinct found = distinctSlices(foldTranspose(input, permutation), node.integerAttr("sorted", 1) != 0);
  node.set(0, gatherAlong(node, Value::of(input), Value::of(Constant::integers(found.first)), axis));
  node.set(1, Value::of(Constant::integers(found.first)));
  node.set(2, Value::of(Constant::integers(found.which)));
  node.set(3, Value::of(Constant::integers(found.counts)));
}

//===-- ReverseSequence -------------------------------------------------------------===//

/// The first `length` elements of each sequence backwards, the rest as it is.
void reverseSequence(Node &node) {
  const Algebra math(node);
  const Value input = node.in(0), given = node.in(1);
  if (input.rank() < 2)
    throw Failure("the input " + toString(input.shape) + " must have a batch and a time dimension");
  const size_t batch = node.axisAttr("batch_axis", 1, input.rank()), time = node.axisAttr("time_axis", 0, input.rank());
  if (batch == time || given.shape != Shape{input.shape[batch]} || given.dtype != DType::I64)
    throw Failure("the batch and time axes must differ, and there must be an int64 length for each of " +
                  std::to_string(input.shape[batch]) + " sequences");
  Shape row(input.shape.size(), 1), column(input.shape.size(), 1);
  row[time] = input.shape[time];
  column[batch] = input.shape[batch];
  std::vector<int64_t> steps(size_t(input.shape[time]));
  std::iota(steps.begin(), steps.end(), 0);
  const Value t = reshape(node, Value::of(Constant::integers(steps)), row), length = reshape(node, given, column);
  const Value backwards = math.sub(math.sub(length, 1), t);
  const Value index = math.choose(math.less(t, length), backwards, t);
  const mlir::Value from = node.operand(input), at = node.operand(broadcastTo(node, index, input.shape));
  node.set(
      0, Value::of(node.create<train::GatherElementsOp>({from, at}, {node.number("axis", int64_t(time))}).getResult()));
}

} // namespace ds::import::ops
