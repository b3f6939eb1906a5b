//===- Resize.cpp - interpolation ------------------------------------------------------------------===//
//
// Every mode works dimension by dimension and is linear in the input: "nearest" is a gather by known indices, the
// others are a product with a matrix of known weights. So the gradient needs nothing of its own.
//
//===----------------------------------------------------------------------===//
#include "compiler/import/ops/Algebra.h"
#include "compiler/import/ops/Ops.h"

#include <cmath>
#include <numeric>

namespace ds::import::ops {
namespace {

/// How one dimension changes.
struct Stretch {
  int64_t from = 0, to = 0;
  double scale = 1;          // as given, or to / from
  double begin = 0, end = 1; // of the region, as parts of the input (tf_crop_and_resize)
};

struct Rules {
  std::string mode, transformation, nearest;
  double cubic = -0.75;
  bool excludeOutside = false, antialias = false;
};

/// Where element `at` of the result lies in the input.
double sourceOf(const Rules &rules, const Stretch &dim, int64_t at) {
  const double x = double(at), from = double(dim.from), to = dim.scale * from; // not rounded
  if (rules.transformation == "half_pixel")
    return (x + 0.5) / dim.scale - 0.5;
  if (rules.transformation == "half_pixel_symmetric") {
    const double offset = from / 2 * (1 - double(dim.to) / to); // the centre stays where it is
    return offset + (x + 0.5) / dim.scale - 0.5;
  }
  if (rules.transformation == "pytorch_half_pixel")
    return dim.to > 1 ? (x + 0.5) / dim.scale - 0.5 : 0;
  if (rules.transformation == "tf_half_pixel_for_nn")
    return (x + 0.5) / dim.scale;
  if (rules.transformation == "align_corners")
    return dim.to > 1 ? x * (from - 1) / (to - 1) : 0;
  if (rules.transformation == "asymmetric")
    return x / dim.scale;
  if (rules.transformation == "tf_crop_and_resize")
    return dim.to > 1 ? (dim.begin + x * (dim.end - dim.begin) / (to - 1)) * (from - 1)
                      : 0.5 * (dim.begin + dim.end) * (from - 1);
  throw Failure("coordinate_transformation_mode '" + rules.transformation + "' is unknown");
}

int64_t nearestTo(const Rules &rules, double x) {
  if (rules.nearest == "round_prefer_floor")
    return int64_t(std::ceil(x - 0.5));
  if (rules.nearest == "round_prefer_ceil")
    return int64_t(std::floor(x + 0.5));
  if (rules.nearest == "floor")
    return int64_t(std::floor(x));
  if (rules.nearest == "ceil")
    return int64_t(std::ceil(x));
  throw Failure("nearest_mode '" + rules.nearest + "' is unknown");
}

/// What an element counts whose distance from the point is `x` elements (Keys, "Cubic convolution").
double kernelAt(const Rules &rules, double x) {
  x = std::fabs(x);
  if (rules.mode == "linear")
    return std::max(1 - x, 0.0);
  const double a = rules.cubic;
  if (x <= 1)
    return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

/// Weights of the elements from `lowest` on behind the last one at or before a point, which lies `t` behind that.
struct Weights {
  int64_t lowest = 0;
  std::vector<double> values;
};

/// With antialias, shrinking widens the kernel by as much, so that every element counts.
Weights weightsAt(const Rules &rules, const Stretch &dim, double t) {
  const double narrowing = rules.antialias ? std::min(dim.scale, 1.0) : 1;
  Weights weights{int64_t(std::floor((rules.mode == "cubic" ? -2 : -1) / narrowing)) + 1, {}};
  double total = 0;
  for (int64_t i = weights.lowest; i < 2 - weights.lowest; ++i)
    total += weights.values.emplace_back(kernelAt(rules, (double(i) - t) * narrowing));
  for (double &value : weights.values)
    value = rules.antialias ? value / total : value;
  return weights;
}

/// Row i of the matrix holds what result i takes from each element; beyond the ends the last element counts again.
std::vector<double> weightMatrix(const Rules &rules, const Stretch &dim) {
  std::vector<double> matrix(size_t(dim.to * dim.from), 0);
  for (int64_t i = 0; i < dim.to; ++i) {
    const double x = sourceOf(rules, dim, i), first = std::floor(x);
    auto [lowest, weights] = weightsAt(rules, dim, x - first);
    lowest += int64_t(first);
    double total = 0;
    for (size_t k = 0; k < weights.size(); ++k) {
      const int64_t at = lowest + int64_t(k);
      if (rules.excludeOutside && (at < 0 || at >= dim.from))
        weights[k] = 0;
      total += weights[k];
    }
    for (size_t k = 0; k < weights.size(); ++k)
      matrix[size_t(i * dim.from + std::clamp<int64_t>(lowest + int64_t(k), 0, dim.from - 1))] +=
          rules.excludeOutside ? weights[k] / total : weights[k];
  }
  return matrix;
}

Value interpolate(Node &node, const Value &input, size_t axis, const Rules &rules, const Stretch &dim) {
  node.budget().charge(dim.to * dim.from);
  const std::vector<double> weights = weightMatrix(rules, dim);
  std::vector<char> bytes(weights.size() * sizeof(double));
  std::memcpy(bytes.data(), weights.data(), bytes.size());
  const Constant matrix = Constant::dense(DType::F64, {dim.to, dim.from}, std::move(bytes));
  std::vector<int64_t> permutation(input.shape.size());
  std::iota(permutation.begin(), permutation.end(), 0);
  std::swap(permutation[axis], permutation.back()); // its own inverse
  const Value last = transpose(node, input, permutation);
  Shape shape = last.shape;
  shape.back() = dim.to;
  const mlir::Value rows = node.operand(reshape(node, last, {elementCount(input.shape) / dim.from, dim.from}));
  const mlir::Value table = node.operand(Value::of(foldCast(matrix, input.dtype, node.budget())));
  const auto transposed = node.builder().getNamedAttr("trans_b", node.builder().getUnitAttr());
  const Value product = Value::of(node.create<train::MatmulOp>({rows, table}, {transposed}).getResult());
  return transpose(node, reshape(node, product, shape), permutation);
}

Value pickNearest(Node &node, const Value &input, size_t axis, const Rules &rules, const Stretch &dim) {
  node.budget().charge(dim.to);
  std::vector<int64_t> indices;
  for (int64_t i = 0; i < dim.to; ++i)
    indices.push_back(std::clamp<int64_t>(nearestTo(rules, sourceOf(rules, dim, i)), 0, dim.from - 1));
  return gatherAlong(node, input, Value::of(Constant::integers(indices)), axis);
}

Rules rulesOf(Node &node) {
  const bool first = node.opset() < 11; // one rule, which Upsample has too
  Rules rules{node.stringAttr("mode", "nearest"),
              first ? "asymmetric" : node.stringAttr("coordinate_transformation_mode", "half_pixel"),
              first ? "floor" : node.stringAttr("nearest_mode", "round_prefer_floor"),
              node.floatAttr("cubic_coeff_a", -0.75),
              node.integerAttr("exclude_outside", 0) != 0,
              node.integerAttr("antialias", 0) != 0};
  if (rules.mode != "nearest" && rules.mode != "linear" && rules.mode != "cubic")
    throw Failure("mode '" + rules.mode + "' is none of 'nearest', 'linear' and 'cubic'");
  return rules;
}

/// One double for each axis from an input of floats or integers.
std::vector<double> numbersOf(Node &node, size_t input, size_t count, const std::string &what) {
  const Constant known = foldCast(node.known(input, what), DType::F64, node.budget());
  if (known.elements() != int64_t(count))
    throw Failure("there are " + std::to_string(known.elements()) + " " + what + " for " + std::to_string(count) +
                  " axes");
  const std::vector<char> bytes = known.bytes(known.shape());
  std::vector<double> numbers(count);
  if (count > 0)
    std::memcpy(numbers.data(), bytes.data(), bytes.size());
  return numbers;
}

bool isGiven(Node &node, size_t input) { return node.has(input) && elementCount(node.in(input).shape) > 0; }

Stretch byScale(int64_t from, double scale) {
  const double to = std::floor(double(from) * scale);
  if (!(scale > 0) || !(to < 1e9))
    throw Failure("a scale of " + text(scale) + " is impossible");
  return {from, int64_t(to), scale};
}

/// The one scale for all axes by which none becomes larger, or smaller, than its size; nothing where each has its own.
std::optional<double> sharedScale(Node &node, const std::vector<double> &sizes, const Shape &shape,
                                  const std::vector<int64_t> &axes) {
  const std::string policy = node.stringAttr("keep_aspect_ratio_policy", "stretch");
  if (policy != "stretch" && policy != "not_larger" && policy != "not_smaller")
    throw Failure("keep_aspect_ratio_policy '" + policy + "' is none of 'stretch', 'not_larger' and 'not_smaller'");
  std::optional<double> shared;
  for (size_t i = 0; i < axes.size() && policy != "stretch"; ++i) {
    const int64_t from = shape[Node::axis(axes[i], int64_t(shape.size()))];
    const double scale = sizes[i] / double(from);
    if (!(scale > 0 && scale < 1e6)) // also of an empty axis
      throw Failure("a size of " + text(sizes[i]) + " from " + std::to_string(from) + " is impossible");
    shared = !shared ? scale : policy == "not_larger" ? std::min(*shared, scale) : std::max(*shared, scale);
  }
  return shared;
}

/// By dimension; those that are not named stay.
std::vector<Stretch> stretches(Node &node, const Shape &shape) {
  std::vector<int64_t> axes(shape.size());
  std::iota(axes.begin(), axes.end(), 0);
  if (const auto list = node.integersAttr("axes"); list && node.opset() >= 18)
    axes = *list;
  (void)Node::axes(axes, int64_t(shape.size()));
  std::vector<Stretch> result;
  for (int64_t size : shape)
    result.push_back({size, size});
  const size_t scales = node.opset() < 11 ? 1 : 2;
  const bool bySizes = scales == 2 && isGiven(node, 3), crops = scales == 2 && isGiven(node, 1);
  if (!bySizes && !isGiven(node, scales))
    throw Failure("neither scales nor sizes are given");
  const std::vector<double> wanted = numbersOf(node, bySizes ? 3 : scales, axes.size(), bySizes ? "sizes" : "scales");
  const std::vector<double> region = crops ? numbersOf(node, 1, 2 * axes.size(), "bounds") : std::vector<double>();
  const std::optional<double> shared = bySizes ? sharedScale(node, wanted, shape, axes) : std::nullopt;
  for (size_t i = 0; i < axes.size(); ++i) {
    const size_t axis = Node::axis(axes[i], int64_t(shape.size()));
    const int64_t from = shape[axis];
    if (node.graph().opensBatch() && bySizes && axis == 0 && wanted[i] == 1)
      continue; // the samples
    const double size = shared ? std::floor(*shared * double(from) + 0.5) : wanted[i];
    result[axis] =
        bySizes ? Stretch{from, int64_t(size), shared.value_or(size / double(from))} : byScale(from, wanted[i]);
    if (crops)
      std::tie(result[axis].begin, result[axis].end) = std::pair(region[i], region[i + axes.size()]);
  }
  return result;
}

} // namespace

/// tf_crop_and_resize alone may look outside of the input, where the result has a value of its own.
static Value fillOutside(Node &node, Value result, const Rules &rules, const std::vector<Stretch> &dims) {
  const Algebra math(node);
  for (size_t axis = 0; axis < dims.size() && rules.transformation == "tf_crop_and_resize"; ++axis) {
    std::vector<char> outside;
    for (int64_t i = 0; i < dims[axis].to; ++i) {
      const double x = sourceOf(rules, dims[axis], i);
      outside.push_back(x < 0 || x > double(dims[axis].from - 1));
    }
    Shape shape(dims.size(), 1);
    shape[axis] = dims[axis].to;
    const Value mask = Value::of(Constant::dense(DType::Bool, shape, std::move(outside)));
    result = math.choose(mask, node.floatAttr("extrapolation_value", 0), result);
  }
  return result;
}

void resize(Node &node) {
  const Rules rules = rulesOf(node);
  Value result = rules.mode == "nearest" ? node.in(0) : node.floatIn(0);
  const std::vector<Stretch> dims = stretches(node, result.shape);
  Shape shape;
  for (const Stretch &dim : dims) {
    if (dim.from == 0)
      throw Failure("a tensor of shape " + toString(result.shape) + " has nothing to interpolate");
    shape.push_back(dim.to);
  }
  checkedElements(shape, result.dtype, "the result");
  for (size_t axis = 0; axis < dims.size(); ++axis)
    if (dims[axis].scale != 1 || rules.transformation == "tf_crop_and_resize")
      result = rules.mode == "nearest" ? pickNearest(node, result, axis, rules, dims[axis])
                                       : interpolate(node, result, axis, rules, dims[axis]);
  node.set(0, fillOutside(node, result, rules, dims));
}

} // namespace ds::import::ops
