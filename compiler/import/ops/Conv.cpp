//===- Conv.cpp - convolution and pooling -------------------------------------------------------===//
#include "compiler/import/ops/Emit.h"
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

void maxPool(Node &node) {
  const Value input = node.floatIn(0);
  const Shape spatial = spatialOf(input);
  Window window = readPool(node, spatial);
  if (node.integerAttr("ceil_mode", 0) != 0)
    extendForCeil(window, spatial);
  node.set(0, pool<train::MaxPoolOp>(node, input, window));
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
    std::vector<int64_t> low{0, 0}, high{0, 0};
    low.insert(low.end(), counted.low.begin(), counted.low.end());
    high.insert(high.end(), counted.high.begin(), counted.high.end());
    const std::vector<int64_t> interior(low.size(), 0);
    const mlir::Value operand = node.operand(input);
    input = Value::of(node.create<train::PadOp>({operand}, {node.list("low", low), node.list("high", high),
                                                            node.list("interior", interior), node.real("value", 0)})
                          .getResult());
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
