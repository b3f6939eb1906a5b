//===- ShapesConv.cpp - result types of convolution and pooling -----------===//
#include "dialects/Train/Train.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace ds::train;

using Types = SmallVectorImpl<Type>;
using Where = std::optional<Location>;

namespace {

/// How a window moves over the spatial dimensions of [N, C, spatial...].
struct Window {
  ArrayRef<int64_t> size, strides, dilations, low, high;

  template <typename Adaptor> static Window of(Adaptor op, ArrayRef<int64_t> size) {
    return {size, op.getStrides(), op.getDilations(), op.getLow(), op.getHigh()};
  }

  /// The places of the window along each dimension of `spatial`, or nothing after a message.
  FailureOr<SmallVector<int64_t>> places(Where location, ArrayRef<int64_t> spatial) const;

private:
  LogicalResult check(Where location, size_t dims) const;
};

} // namespace

LogicalResult Window::check(Where location, size_t dims) const {
  const std::pair<StringRef, ArrayRef<int64_t>> lists[] = {
      {"window", size}, {"strides", strides}, {"dilations", dilations}, {"low", low}, {"high", high}};
  for (auto [name, entries] : lists) {
    if (entries.size() != dims) // conv_c2, pool_c1
      return emitOptionalError(location, "'", name, "' has ", entries.size(), " entries for ", dims,
                               " spatial dimensions");
    const int64_t least = name == "low" || name == "high" ? 0 : 1;
    for (int64_t entry : entries)
      if (entry < least || entry > (int64_t(1) << 24)) // conv_c2, pool_c1; sums below cannot overflow
        return emitOptionalError(location, "'", name, "' holds ", entry, "; it must be at least ", least,
                                 " and at most 2^24");
  }
  return success();
}

FailureOr<SmallVector<int64_t>> Window::places(Where location, ArrayRef<int64_t> spatial) const {
  if (failed(check(location, spatial.size())))
    return failure();
  SmallVector<int64_t> counts;
  for (size_t d = 0; d < spatial.size(); ++d) {
    int64_t extent = 0;
    if (llvm::MulOverflow(dilations[d], size[d] - 1, extent) || extent >= low[d] + high[d] + spatial[d])
      return emitOptionalError(location, "spatial dimension ", d, " of ", spatial[d], ", padded by ", low[d], " and ",
                               high[d], ", is too small for a window of ", size[d], " with dilation ",
                               dilations[d]); // conv_c3, pool_c2
    counts.push_back((low[d] + high[d] + spatial[d] - extent - 1) / strides[d] + 1);
  }
  return counts;
}

static RankedTensorType tensor(Value value) { return cast<RankedTensorType>(value.getType()); }

static bool isSpatialRank(int64_t rank) { return rank >= 3 && rank <= 5; }

//===-- convolution -------------------------------------------------------------===//

/// The type of a convolution of an input of type `input` by a weight of shape `weight`.
template <typename Adaptor>
static FailureOr<RankedTensorType> convType(Where location, Adaptor op, RankedTensorType input,
                                            RankedTensorType weight) {
  const auto groups = int64_t(op.getGroups());
  const bool fits = isSpatialRank(input.getRank()) && weight.getRank() == input.getRank() &&
                    weight.getElementType() == input.getElementType();
  if (!fits || groups < 1 || weight.getDimSize(0) % groups != 0 || input.getDimSize(1) % groups != 0 ||
      weight.getDimSize(1) != input.getDimSize(1) / groups) // conv_c1
    return emitOptionalError(location, "input ", input, " and weight ", weight, " with ", groups,
                             " groups must be [N, C, spatial...] and [M, C / groups, window...]");
  auto places = Window::of(op, weight.getShape().drop_front(2)).places(location, input.getShape().drop_front(2));
  if (failed(places))
    return failure();
  SmallVector<int64_t> shape{input.getDimSize(0), weight.getDimSize(0)};
  llvm::append_range(shape, *places);
  return input.clone(shape);
}

LogicalResult ConvOp::inferReturnTypes(MLIRContext *, Where location, Adaptor adaptor, Types &types) {
  auto type = convType(location, adaptor, tensor(adaptor.getInput()), tensor(adaptor.getWeight()));
  if (failed(type))
    return failure();
  if (Value bias = adaptor.getBias())
    if (tensor(bias) != type->clone({type->getDimSize(1)})) // conv_c4
      return emitOptionalError(location, "bias ", bias.getType(), " must be a vector of ", type->getDimSize(1), " ",
                               type->getElementType());
  types.push_back(*type);
  return success();
}

static bool isShape(ArrayRef<int64_t> shape) {
  int64_t count = 1;
  return llvm::all_of(shape, [&](int64_t dim) { return dim >= 0 && !llvm::MulOverflow(count, dim, count); });
}

LogicalResult ConvInputGradOp::inferReturnTypes(MLIRContext *, Where location, Adaptor adaptor, Types &types) {
  auto gradient = tensor(adaptor.getGradient());
  if (!isShape(adaptor.getShape())) // conv_input_grad_c1
    return emitOptionalError(location, "[", adaptor.getShape(), "] is no shape of an input");
  auto input = gradient.clone(adaptor.getShape());
  auto expected = convType(location, adaptor, input, tensor(adaptor.getWeight()));
  if (failed(expected))
    return failure();
  if (*expected != gradient) // conv_input_grad_c1
    return emitOptionalError(location, "gradient ", gradient, " is not that of a convolution of ", input, ", which is ",
                             *expected);
  types.push_back(input);
  return success();
}

LogicalResult ConvWeightGradOp::inferReturnTypes(MLIRContext *, Where location, Adaptor adaptor, Types &types) {
  auto gradient = tensor(adaptor.getGradient());
  if (!isShape(adaptor.getShape())) // conv_weight_grad_c1
    return emitOptionalError(location, "[", adaptor.getShape(), "] is no shape of a weight");
  auto weight = gradient.clone(adaptor.getShape());
  auto expected = convType(location, adaptor, tensor(adaptor.getInput()), weight);
  if (failed(expected))
    return failure();
  if (*expected != gradient) // conv_weight_grad_c1
    return emitOptionalError(location, "gradient ", gradient, " is not that of a convolution by ", weight,
                             ", which is ", *expected);
  return addWidened(location, weight, adaptor.getWide(), types); // conv_weight_grad_c2
}

//===-- pooling -----------------------------------------------------------------===//

/// Whether the window holds an element of the input at every place; `d` is one where it does not.
static bool alwaysInside(const Window &window, ArrayRef<int64_t> spatial, ArrayRef<int64_t> places, size_t &d) {
  for (d = 0; d < spatial.size(); ++d) {
    const int64_t dilation = window.dilations[d];
    auto isInside = [&](int64_t place) {
      const int64_t start = place * window.strides[d] - window.low[d];
      const int64_t skipped = start < 0 ? llvm::divideCeil(-start, dilation) : 0; // elements before the input
      return skipped < window.size[d] && start + skipped * dilation < spatial[d];
    };
    // Only windows that reach out of the input can lie outside, and those are few.
    const int64_t extent = dilation * (window.size[d] - 1) + 1;
    for (int64_t place = 0; place < places[d] && place * window.strides[d] < window.low[d]; ++place)
      if (!isInside(place))
        return false;
    for (int64_t place = places[d]; place-- > 0;) {
      if (place * window.strides[d] - window.low[d] + extent <= spatial[d])
        break;
      if (!isInside(place))
        return false;
    }
  }
  return true;
}

template <typename Adaptor>
static FailureOr<RankedTensorType> poolType(Where location, Adaptor op, RankedTensorType input) {
  if (!isSpatialRank(input.getRank())) // pool_c1
    return emitOptionalError(location, "input ", input, " must be [N, C, spatial...] with one to three dimensions");
  const Window window = Window::of(op, op.getWindow());
  ArrayRef<int64_t> spatial = input.getShape().drop_front(2);
  auto places = window.places(location, spatial);
  if (failed(places))
    return failure();
  size_t d = 0;
  if (!alwaysInside(window, spatial, *places, d)) // pool_c2
    return emitOptionalError(location, "spatial dimension ", d, " of ", spatial[d], ", padded by ", window.low[d],
                             " and ", window.high[d], ": a window of ", window.size[d], " with dilation ",
                             window.dilations[d], " and stride ", window.strides[d],
                             " would hold no element of the input");
  SmallVector<int64_t> shape(input.getShape().take_front(2));
  llvm::append_range(shape, *places);
  return input.clone(shape);
}

LogicalResult MaxPoolOp::inferReturnTypes(MLIRContext *, Where location, Adaptor adaptor, Types &types) {
  auto type = poolType(location, adaptor, tensor(adaptor.getInput()));
  if (succeeded(type))
    types.push_back(*type);
  return type;
}

LogicalResult AveragePoolOp::inferReturnTypes(MLIRContext *, Where location, Adaptor adaptor, Types &types) {
  auto type = poolType(location, adaptor, tensor(adaptor.getInput()));
  if (succeeded(type))
    types.push_back(*type);
  return type;
}

template <typename Adaptor>
static LogicalResult inferPoolGrad(Where location, Adaptor op, RankedTensorType input, Types &types) {
  auto expected = poolType(location, op, input);
  if (failed(expected))
    return failure();
  if (*expected != op.getGradient().getType()) // max_pool_grad_c1, average_pool_grad_c1
    return emitOptionalError(location, "gradient ", op.getGradient().getType(), " is not that of a pool of ", input,
                             ", which is ", *expected);
  types.push_back(input);
  return success();
}

LogicalResult MaxPoolGradOp::inferReturnTypes(MLIRContext *, Where location, Adaptor adaptor, Types &types) {
  return inferPoolGrad(location, adaptor, tensor(adaptor.getInput()), types);
}

LogicalResult AveragePoolGradOp::inferReturnTypes(MLIRContext *, Where location, Adaptor adaptor, Types &types) {
  if (!isShape(adaptor.getShape())) // average_pool_grad_c1
    return emitOptionalError(location, "[", adaptor.getShape(), "] is no shape of an input");
  return inferPoolGrad(location, adaptor, tensor(adaptor.getGradient()).clone(adaptor.getShape()), types);
}
