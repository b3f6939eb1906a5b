//===- Conv.cpp - convolution and pooling -------------------------------------------------------===//
#include "compiler/import/ops/Algebra.h"
#include "compiler/import/ops/Ops.h"

namespace ds::import::ops {

/// The attributes that convolutions and pools share; one entry for a spatial dimension each.
struct Window {
  std::vector<int64_t> size, strides, dilations, low, high;

  /// Places from the first element of the window to its last, both included.
  int64_t extent(size_t d) const { return (size[d] - 1) * dilations[d] + 1; }
};

static std::vector<int64_t> entries(Node &node, const std::string &name, size_t count, int64_t least) {
  const std::optional<std::vector<int64_t>> given = node.integersAttr(name);
  if (!given)
    return std::vector<int64_t>(count, least);
  if (given->size() != count)
    throw Failure("'" + name + "' has " + std::to_string(given->size()) + " entries where " + std::to_string(count) +
                  " are needed");
  constexpr int64_t most = int64_t(1) << 24;
  for (int64_t entry : *given)
    if (entry < least || entry > most)
      throw Failure("'" + name + "' holds " + std::to_string(entry) + "; it must be between " + std::to_string(least) +
                    " and " + std::to_string(most));
  return *given;
}

/// [N, C, spatial...] with one to three spatial dimensions.
static Shape spatialOf(const Value &input) {
  if (input.rank() < 3 || input.rank() > 5)
    throw Failure("the input " + toString(input.shape) +
                  " must have the dimensions N, C and one to three spatial ones");
  return {input.shape.begin() + 2, input.shape.end()};
}

static Window readWindow(Node &node, std::vector<int64_t> size) {
  const size_t dims = size.size();
  Window window{std::move(size), entries(node, "strides", dims, 1), entries(node, "dilations", dims, 1), {}, {}};
  const std::vector<int64_t> pads = entries(node, "pads", 2 * dims, 0);
  window.low.assign(pads.begin(), pads.begin() + long(dims));
  window.high.assign(pads.begin() + long(dims), pads.end());
  return window;
}

/// `total` padding, the larger half after the input for SAME_UPPER.
static void splitPadding(Window &window, size_t d, int64_t total, bool upper) {
  total = std::max<int64_t>(total, 0);
  window.low[d] = upper ? total / 2 : total - total / 2;
  window.high[d] = total - window.low[d];
}

/// Attribute auto_pad in place of pads: SAME gives ceil(size / stride) results.
static void applyAutoPad(Node &node, Window &window, const Shape &spatial) {
  const std::string mode = node.stringAttr("auto_pad", "NOTSET");
  if (mode == "NOTSET" || mode == "VALID") {
    if (mode == "VALID")
      window.low = window.high = std::vector<int64_t>(spatial.size(), 0);
    return;
  }
  if (mode != "SAME_UPPER" && mode != "SAME_LOWER")
    throw Failure("auto_pad '" + mode + "' is none of NOTSET, VALID, SAME_UPPER, SAME_LOWER");
  for (size_t d = 0; d < spatial.size(); ++d) {
    const int64_t places = (spatial[d] + window.strides[d] - 1) / window.strides[d];
    splitPadding(window, d, (places - 1) * window.strides[d] + window.extent(d) - spatial[d], mode == "SAME_UPPER");
  }
}

static llvm::SmallVector<mlir::NamedAttribute> attributesOf(Node &node, const Window &window) {
  return {node.list("strides", window.strides), node.list("dilations", window.dilations), node.list("low", window.low),
          node.list("high", window.high)};
}

//===-- convolution -------------------------------------------------------------===//

/// The window of a weight [filters, channels, window...], which kernel_shape may repeat.
static std::vector<int64_t> weightWindow(Node &node, const Value &input, const Value &weight) {
  if (weight.rank() != input.rank())
    throw Failure("the weight " + toString(weight.shape) + " must have as many dimensions as the input " +
                  toString(input.shape));
  const std::vector<int64_t> size(weight.shape.begin() + 2, weight.shape.end());
  if (const auto given = node.integersAttr("kernel_shape"); given && *given != size)
    throw Failure("kernel_shape " + toString(*given) + " is not that of the weight " + toString(weight.shape));
  return size;
}

/// Exporters write a bias of zeros where the module has none.
static bool isZero(Node &node, const Value &value) {
  const std::optional<Constant> constant = node.graph().known(value);
  return constant && constant->isUniform() && constant->elements() > 0 && constant->firstAsDouble() == 0;
}

void conv(Node &node) {
  const Value input = node.floatIn(0), weight = node.floatIn(1);
  const Shape spatial = spatialOf(input);
  Window window = readWindow(node, weightWindow(node, input, weight));
  applyAutoPad(node, window, spatial);
  llvm::SmallVector<mlir::Value, 3> operands{node.operand(input), node.operand(weight)};
  if (node.has(2) && !isZero(node, node.floatIn(2)))
    operands.push_back(node.operand(node.in(2)));
  auto attributes = attributesOf(node, window);
  attributes.push_back(node.number("groups", node.integerAttr("group", 1)));
  node.set(0, Value::of(node.create<train::ConvOp>(operands, attributes).getResult()));
}

/// The spatial shape of a transposed convolution's result; an explicit output_shape decides the pads.
static Shape transposedShape(Node &node, Window &window, const Shape &spatial) {
  const size_t dims = spatial.size();
  const std::vector<int64_t> extra = entries(node, "output_padding", dims, 0);
  const std::string mode = node.stringAttr("auto_pad", "NOTSET");
  const bool same = mode == "SAME_UPPER" || mode == "SAME_LOWER",
             explicitShape = node.integersAttr("output_shape").has_value();
  const std::vector<int64_t> asked = entries(node, "output_shape", dims, 0);
  Shape shape;
  for (size_t d = 0; d < dims; ++d) {
    const int64_t whole = (spatial[d] - 1) * window.strides[d] + window.extent(d) + extra[d];
    if (explicitShape || same) {
      shape.push_back(explicitShape ? asked[d] : spatial[d] * window.strides[d]);
      splitPadding(window, d, whole - shape[d], mode == "SAME_UPPER");
    } else {
      shape.push_back(whole - window.low[d] - window.high[d]);
    }
  }
  return shape;
}

/// What carries a convolution's gradient back to its input is the transposed convolution itself.
void convTranspose(Node &node) {
  const Value input = node.floatIn(0), weight = node.floatIn(1);
  const Shape spatial = spatialOf(input);
  Window window = readWindow(node, weightWindow(node, input, weight));
  const int64_t groups = node.integerAttr("group", 1);
  if (groups < 1 || groups > (int64_t(1) << 24) || weight.shape[1] > (int64_t(1) << 32))
    throw Failure("group " + std::to_string(groups) + " does not divide the channels of " + toString(input.shape));
  const Shape after = transposedShape(node, window, spatial);
  Shape shape{input.shape[0], weight.shape[1] * groups};
  shape.insert(shape.end(), after.begin(), after.end());
  auto attributes = attributesOf(node, window);
  attributes.push_back(node.number("groups", groups));
  attributes.push_back(node.list("shape", shape));
  const mlir::Value gradient = node.operand(input), by = node.operand(weight);
  Value result = Value::of(node.create<train::ConvInputGradOp>({gradient, by}, attributes).getResult());
  if (node.has(2) && !isZero(node, node.floatIn(2))) {
    Shape column(size_t(input.rank()) - 1, 1);
    column[0] = shape[1];
    result = binary<train::AddOp>(node, BinaryFold::Add, result, reshape(node, node.in(2), column));
  }
  node.set(0, result);
}

//===-- pooling -----------------------------------------------------------------===//

/// Pads after the input that make whole what ceil_mode adds to the last window; a window that would begin after the
/// input (and its padding before it) does not exist.
static void extendForCeil(Window &window, const Shape &spatial) {
  for (size_t d = 0; d < spatial.size(); ++d) {
    const int64_t padded = spatial[d] + window.low[d] + window.high[d], room = padded - window.extent(d);
    if (room < 0)
      continue; // the op's own rule has the words for it
    int64_t last = (room + window.strides[d] - 1) / window.strides[d] * window.strides[d];
    if (last >= spatial[d] + window.low[d])
      last -= window.strides[d];
    window.high[d] = std::max<int64_t>(last + window.extent(d) - spatial[d] - window.low[d], 0);
  }
}

static Window readPool(Node &node, const Shape &spatial) {
  const auto size = node.integersAttr("kernel_shape");
  if (!size || size->size() != spatial.size())
    throw Failure("kernel_shape must have " + std::to_string(spatial.size()) + " entries");
  Window window = readWindow(node, entries(node, "kernel_shape", spatial.size(), 1));
  applyAutoPad(node, window, spatial);
  return window;
}

template <typename OpTy> static Value pool(Node &node, const Value &input, const Window &window) {
  auto attributes = attributesOf(node, window);
  attributes.push_back(node.list("window", window.size));
  return Value::of(node.create<OpTy>({node.operand(input)}, attributes).getResult());
}

/// `outer` entries that change nothing, then those of the spatial dimensions.
static Shape withOuter(int64_t outer, const std::vector<int64_t> &spatial) {
  Shape shape{outer, outer};
  shape.insert(shape.end(), spatial.begin(), spatial.end());
  return shape;
}

static Value padded(Node &node, const Value &input, const Shape &low, const Shape &high, double value) {
  return Value::of(node.create<train::PadOp>({node.operand(input)},
                                             {node.list("low", low), node.list("high", high),
                                              node.list("interior", Shape(low.size(), 0)), node.real("value", value)})
                       .getResult());
}

/// By how much an index into the whole tensor grows with each spatial dimension. With storage_order=1 the first of
/// them is the one that runs fastest.
static std::vector<int64_t> indexSteps(const Shape &spatial, bool columnMajor) {
  std::vector<int64_t> steps(spatial.size());
  int64_t step = 1;
  for (size_t i = 0; i < spatial.size(); ++i) {
    const size_t d = columnMajor ? i : spatial.size() - 1 - i;
    steps[d] = step;
    step *= spatial[d];
  }
  return steps;
}

/// Along dimension d, the positions that windows read: place k of window o is entry k * results + o. In the padding it
/// is the window's nearest place inside, so that the same elements compete.
static std::vector<int64_t> windowPositions(Node &node, const Window &window, size_t d, int64_t size, int64_t results) {
  const int64_t dilation = window.dilations[d], places = window.size[d];
  node.budget().charge(places * results);
  std::vector<int64_t> positions;
  for (int64_t k = 0; k < places; ++k)
    for (int64_t o = 0; o < results; ++o) {
      const int64_t start = o * window.strides[d] - window.low[d];
      const int64_t first = std::max<int64_t>(0, (-start + dilation - 1) / dilation);
      const int64_t last = std::min(places - 1, (size - 1 - start) / dilation);
      if (size - 1 < start || first > last)
        throw Failure("a window lies in the padding as a whole, where no element has an index");
      positions.push_back(start + std::clamp(k, first, last) * dilation);
    }
  return positions;
}

/// `size` numbers from 0 on by `step` along dimension `dim` of a tensor of rank `rank`.
static Value progression(Node &node, int64_t step, int64_t size, size_t dim, size_t rank) {
  Shape shape(rank, 1);
  shape[dim] = size;
  return reshape(node, Value::of(foldRange(Constant::integer(0), Constant::integer(step), size, node.budget())), shape);
}

/// Where in the whole tensor each window's largest element lies; of equal ones the first.
static Value maxIndices(Node &node, const Value &input, const Window &window, const Shape &results) {
  const Algebra math(node);
  const Shape spatial = spatialOf(input);
  const size_t dims = spatial.size(), rank = results.size();
  std::vector<Value> tables;
  Value read = input;
  Shape apart{results[0], results[1]}, joined = results; // [N, C, places, results, ...], [N, C, results..., all places]
  std::vector<int64_t> permutation{0, 1};
  for (size_t d = 0; d < dims; ++d) {
    tables.push_back(Value::of(Constant::integers(windowPositions(node, window, d, spatial[d], results[2 + d]))));
    read = gatherAlong(node, read, tables[d], 2 + d);
    apart.insert(apart.end(), {window.size[d], results[2 + d]});
    permutation.push_back(int64_t(3 + 2 * d));
  }
  for (size_t d = 0; d < dims; ++d)
    permutation.push_back(int64_t(2 + 2 * d));
  joined.push_back(elementCount(window.size));
  const Value windows = reshape(node, transpose(node, reshape(node, read, apart), permutation), joined);
  auto largest = node.create<train::ArgMaxOp>({node.operand(windows)}, {node.number("axis", int64_t(rank))});
  const std::vector<int64_t> steps = indexSteps(spatial, node.integerAttr("storage_order", 0) != 0);
  const int64_t plane = elementCount(spatial);
  Value place = Value::of(largest.getResult()); // in its window, row-major
  Value index = math.add(progression(node, plane * results[1], results[0], 0, rank),
                         progression(node, plane, results[1], 1, rank));
  for (size_t d = dims; d-- > 0;) {
    const auto size = double(window.size[d]);
    const Value rest = math.div(place, size), along = math.sub(place, math.mul(rest, size));
    const Value entry =
        math.add(math.mul(along, double(results[2 + d])), progression(node, 1, results[2 + d], 2 + d, rank));
    index = math.add(math.mul(gatherAlong(node, tables[d], entry, 0), double(steps[d])), index);
    place = rest;
  }
  return index;
}

void maxPool(Node &node) {
  const Value input = node.floatIn(0);
  const Shape spatial = spatialOf(input);
  Window window = readPool(node, spatial);
  if (node.integerAttr("ceil_mode", 0) != 0)
    extendForCeil(window, spatial);
  const Value result = pool<train::MaxPoolOp>(node, input, window);
  node.set(0, result);
  if (node.wants(1))
    node.set(1, maxIndices(node, input, window, result.shape));
}

/// Each element goes back to the place that its index names; zeros lie between. A larger output_shape has zeros after
/// what the window gives.
void maxUnpool(Node &node) {
  const Value input = node.floatIn(0), indices = node.in(1);
  const Shape spatial = spatialOf(input);
  const Window window = readPool(node, spatial);
  if (indices.shape != input.shape || indices.dtype != DType::I64)
    throw Failure("the indices must be int64 " + toString(input.shape) + ", as the input");
  Shape shape{input.shape[0], input.shape[1]};
  for (size_t d = 0; d < spatial.size(); ++d)
    shape.push_back((spatial[d] - 1) * window.strides[d] + window.size[d] - window.low[d] - window.high[d]);
  const int64_t elements = checkedElements(shape, input.dtype, "the result"), count = elementCount(input.shape);
  const mlir::Value zeros = node.operand(broadcastTo(node, floatScalar(input.dtype, 0), {elements})),
                    at = node.operand(reshape(node, indices, {count})),
                    what = node.operand(reshape(node, input, {count}));
  const auto replace = train::ScatterReductionAttr::get(node.builder().getContext(), train::ScatterReduction::Replace);
  auto op = node.create<train::ScatterElementsOp>(
      {zeros, at, what}, {node.number("axis", 0), node.builder().getNamedAttr("reduction", replace)});
  const Value result = reshape(node, Value::of(op.getResult()), shape);
  const Shape wanted = node.has(2) ? Shape(node.integers(2, "output shape")) : shape;
  Shape more;
  for (size_t i = 0; i < shape.size() && wanted.size() == shape.size(); ++i)
    more.push_back(wanted[i] - shape[i]);
  if (more.size() != shape.size() || more[0] != 0 || more[1] != 0 || *std::min_element(more.begin(), more.end()) < 0)
    throw Failure("the output shape " + toString(wanted) + " must be at least " + toString(shape));
  node.set(0, wanted == shape ? result : padded(node, result, Shape(shape.size(), 0), more, 0));
}

/// Padding that counts is part of the input: zeros around it. What ceil_mode adds never counts.
void averagePool(Node &node) {
  Value input = node.floatIn(0);
  const Shape spatial = spatialOf(input);
  Window window = readPool(node, spatial);
  Window counted = window;
  if (node.integerAttr("ceil_mode", 0) != 0)
    extendForCeil(window, spatial);
  if (node.integerAttr("count_include_pad", 0) != 0) {
    input = padded(node, input, withOuter(0, counted.low), withOuter(0, counted.high), 0);
    for (size_t d = 0; d < spatial.size(); ++d) {
      window.low[d] = 0;
      window.high[d] = std::max<int64_t>(window.high[d] - counted.high[d], 0);
    }
  }
  node.set(0, pool<train::AveragePoolOp>(node, input, window));
}

static void globalPool(Node &node, ReduceFold kind) {
  const Value input = node.floatIn(0);
  std::vector<int64_t> axes;
  for (size_t d = 0; d < spatialOf(input).size(); ++d)
    axes.push_back(int64_t(d) + 2);
  node.set(0, reduce(node, kind, input, axes, /*keepDims=*/true));
}
void globalAveragePool(Node &node) { globalPool(node, ReduceFold::Mean); }
void globalMaxPool(Node &node) { globalPool(node, ReduceFold::Max); }

} // namespace ds::import::ops
