//===- Shapes.cpp - result types of everything that is not elementwise -----===//
#include "dialects/Train/Train.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace ds::train;

using Types = SmallVectorImpl<Type>;
using Where = std::optional<Location>;

static RankedTensorType tensor(Value value) { return cast<RankedTensorType>(value.getType()); }
static ArrayRef<int64_t> shapeOf(Value value) { return tensor(value).getShape(); }
static int64_t signedAttr(uint64_t value) { return static_cast<int64_t>(value); }

/// Whether `axis` is a dimension of `value`; `rule` is the constraint's id in the op's page.
static LogicalResult checkAxis(Where location, int64_t axis, Value value) {
  const int64_t rank = tensor(value).getRank();
  if (axis < 0 || axis >= rank)
    return emitOptionalError(location, "axis ", axis, " is not a dimension of ", value.getType());
  return success();
}

static LogicalResult checkEntries(Where location, StringRef name, ArrayRef<int64_t> entries, Value value) {
  if (int64_t(entries.size()) != tensor(value).getRank())
    return emitOptionalError(location, "'", name, "' has ", entries.size(), " entries for ", value.getType());
  return success();
}

RankedTensorType ds::train::statisticsType(RankedTensorType type) {
  return isNarrowFloat(type.getElementType()) ? type.clone(Float32Type::get(type.getContext())) : type;
}

LogicalResult ds::train::addWidened(Where location, RankedTensorType type, bool wide, Types &types) {
  if (wide && !isNarrowFloat(type.getElementType()))
    return emitOptionalError(location, "'wide' is for operands of bf16 or f16, not of ", type.getElementType());
  types.push_back(wide ? statisticsType(type) : type);
  return success();
}

//===-- constants and movement ------------------------------------------------===//

LogicalResult ConstantOp::inferReturnTypes(MLIRContext *, Where location, Adaptor adaptor, Types &types) {
  types.push_back(adaptor.getValue().getShapedType());
  return success();
}

LogicalResult ReshapeOp::inferReturnTypes(MLIRContext *, Where location, Adaptor adaptor, Types &types) {
  int64_t count = 1;
  for (int64_t dim : adaptor.getShape()) {
    if (dim < 0) // reshape_c1
      return emitOptionalError(location, "shape [", adaptor.getShape(), "] has a negative dimension");
    if (llvm::MulOverflow(count, dim, count)) // reshape_c1
      return emitOptionalError(location, "shape [", adaptor.getShape(), "] has more elements than an i64 counts");
  }
  if (count != tensor(adaptor.getInput()).getNumElements()) // reshape_c1
    return emitOptionalError(location, "cannot reshape ", adaptor.getInput().getType(), " to [", adaptor.getShape(),
                             "]: ", tensor(adaptor.getInput()).getNumElements(), " elements are not ", count);
  types.push_back(tensor(adaptor.getInput()).clone(adaptor.getShape()));
  return success();
}

LogicalResult TransposeOp::inferReturnTypes(MLIRContext *, Where location, Adaptor adaptor, Types &types) {
  ArrayRef<int64_t> permutation = adaptor.getPerm(), shape = shapeOf(adaptor.getInput());
  SmallVector<bool> seen(shape.size(), false);
  SmallVector<int64_t> result;
  for (int64_t dim : permutation) {
    if (permutation.size() != shape.size() || dim < 0 || dim >= int64_t(shape.size()) || seen[dim]) // transpose_c1
      return emitOptionalError(location, "[", permutation, "] is not a permutation of the dimensions of ",
                               adaptor.getInput().getType());
    seen[dim] = true;
    result.push_back(shape[dim]);
  }
  if (result.size() != shape.size()) // transpose_c1
    return emitOptionalError(location, "[", permutation, "] is not a permutation of the dimensions of ",
                             adaptor.getInput().getType());
  types.push_back(tensor(adaptor.getInput()).clone(result));
  return success();
}

LogicalResult BroadcastOp::inferReturnTypes(MLIRContext *, Where location, Adaptor adaptor, Types &types) {
  auto shape = broadcastShapes(shapeOf(adaptor.getInput()), adaptor.getShape());
  if (!shape || ArrayRef<int64_t>(*shape) != adaptor.getShape() ||
      llvm::any_of(*shape, [](int64_t d) { return d < 0; }))
    return emitOptionalError(location, adaptor.getInput().getType(), " does not broadcast to [", adaptor.getShape(),
                             "]"); // broadcast_c1
  types.push_back(tensor(adaptor.getInput()).clone(*shape));
  return success();
}

LogicalResult SliceOp::inferReturnTypes(MLIRContext *, Where location, Adaptor adaptor, Types &types) {
  Value input = adaptor.getInput();
  ArrayRef<int64_t> starts = adaptor.getStarts(), sizes = adaptor.getSizes(), steps = adaptor.getSteps();
  if (failed(checkEntries(location, "starts", starts, input)) ||
      failed(checkEntries(location, "sizes", sizes, input)) ||
      failed(checkEntries(location, "steps", steps, input))) // slice_c1
    return failure();
  for (auto [dim, extent] : llvm::enumerate(shapeOf(input))) {
    if (starts[dim] < 0 || sizes[dim] < 0 || steps[dim] < 1) // slice_c2
      return emitOptionalError(location, "dimension ", dim, ": start ", starts[dim], ", size ", sizes[dim], ", step ",
                               steps[dim], " must be >= 0, >= 0, >= 1");
    const bool inside = sizes[dim] == 0
                            ? starts[dim] <= extent
                            : starts[dim] < extent && (extent - 1 - starts[dim]) / steps[dim] >= sizes[dim] - 1;
    if (!inside) // slice_c3
      return emitOptionalError(location, "dimension ", dim, ": start ", starts[dim], ", size ", sizes[dim], ", step ",
                               steps[dim], " read past its end ", extent);
  }
  types.push_back(tensor(input).clone(sizes));
  return success();
}

LogicalResult PadOp::inferReturnTypes(MLIRContext *, Where location, Adaptor adaptor, Types &types) {
  Value input = adaptor.getInput();
  ArrayRef<int64_t> low = adaptor.getLow(), high = adaptor.getHigh(), interior = adaptor.getInterior();
  if (failed(checkEntries(location, "low", low, input)) || failed(checkEntries(location, "high", high, input)) ||
      failed(checkEntries(location, "interior", interior, input))) // pad_c1
    return failure();
  SmallVector<int64_t> shape;
  for (auto [dim, extent] : llvm::enumerate(shapeOf(input))) {
    if (low[dim] < 0 || high[dim] < 0 || interior[dim] < 0) // pad_c1
      return emitOptionalError(location, "dimension ", dim, ": low ", low[dim], ", high ", high[dim], ", interior ",
                               interior[dim], " must not be negative");
    int64_t size = 0;
    if (llvm::MulOverflow(std::max<int64_t>(extent - 1, 0), interior[dim], size) ||
        llvm::AddOverflow(size, extent, size) || llvm::AddOverflow(size, low[dim], size) ||
        llvm::AddOverflow(size, high[dim], size)) // pad_c1
      return emitOptionalError(location, "dimension ", dim, ": low ", low[dim], ", high ", high[dim], ", interior ",
                               interior[dim], " make it larger than an i64 counts");
    shape.push_back(size);
  }
  types.push_back(tensor(input).clone(shape));
  return success();
}

LogicalResult ConcatOp::inferReturnTypes(MLIRContext *, Where location, Adaptor adaptor, Types &types) {
  ValueRange inputs = adaptor.getInputs();
  const int64_t axis = signedAttr(adaptor.getAxis());
  if (inputs.empty()) // concat_c1
    return emitOptionalError(location, "there is nothing to join");
  if (failed(checkAxis(location, axis, inputs.front()))) // concat_c1
    return failure();
  SmallVector<int64_t> shape(shapeOf(inputs.front()));
  shape[axis] = 0;
  for (Value input : inputs) {
    SmallVector<int64_t> other(shapeOf(input));
    const int64_t extent = axis < int64_t(other.size()) ? other[axis] : 0;
    if (axis < int64_t(other.size()))
      other[axis] = shape[axis];
    if (other != shape || tensor(input).getElementType() != tensor(inputs.front()).getElementType()) // concat_c2
      return emitOptionalError(location, input.getType(), " cannot be joined to ", inputs.front().getType(),
                               " along axis ", axis);
    shape[axis] += extent;
  }
  types.push_back(tensor(inputs.front()).clone(shape));
  return success();
}

/// The shape of numpy.take on data of shape `data`.
static SmallVector<int64_t> takeShape(ArrayRef<int64_t> data, ArrayRef<int64_t> indices, int64_t axis) {
  SmallVector<int64_t> shape(data.take_front(axis));
  llvm::append_range(shape, indices);
  llvm::append_range(shape, data.drop_front(axis + 1));
  return shape;
}

LogicalResult GatherOp::inferReturnTypes(MLIRContext *, Where location, Adaptor adaptor, Types &types) {
  const int64_t axis = signedAttr(adaptor.getAxis());
  if (failed(checkAxis(location, axis, adaptor.getData()))) // gather_c1
    return failure();
  auto shape = takeShape(shapeOf(adaptor.getData()), shapeOf(adaptor.getIndices()), axis);
  types.push_back(tensor(adaptor.getData()).clone(shape)); // gather_c2
  return success();
}

LogicalResult GatherGradOp::inferReturnTypes(MLIRContext *, Where location, Adaptor adaptor, Types &types) {
  const int64_t axis = signedAttr(adaptor.getAxis());
  ArrayRef<int64_t> shape = adaptor.getShape();
  if (axis < 0 || axis >= int64_t(shape.size()) ||
      llvm::any_of(
          shape, [](int64_t dim) { return dim < 0; }) ||
      ArrayRef<int64_t>(takeShape(shape, shapeOf(adaptor.getIndices()), axis)) != shapeOf(adaptor.getGradient()))
    return emitOptionalError(location, "gradient ", adaptor.getGradient().getType(), " is not that of a gather from [",
                             shape, "] along axis ", axis);                                          // gather_grad_c1
  return addWidened(location, tensor(adaptor.getGradient()).clone(shape), adaptor.getWide(), types); // gather_grad_c2
}

//===-- products and sums -------------------------------------------------------===//

/// A product of which `adaptor` names the operands; it may be widened, where the op can be.
template <typename Adaptor>
static LogicalResult inferProduct(Where location, Adaptor adaptor, Value bias, bool wide, Types &types) {
  auto lhs = tensor(adaptor.getLhs()), rhs = tensor(adaptor.getRhs());
  if (lhs.getRank() < 2 || rhs.getRank() < 2 || lhs.getElementType() != rhs.getElementType()) // matmul_c1
    return emitOptionalError(location, "operands ", lhs, " and ", rhs,
                             " must have two or more dimensions and one element type");
  auto rows = [](RankedTensorType t, bool transposed) { return t.getDimSize(t.getRank() - (transposed ? 1 : 2)); };
  auto columns = [](RankedTensorType t, bool transposed) { return t.getDimSize(t.getRank() - (transposed ? 2 : 1)); };
  const bool transA = adaptor.getTransA(), transB = adaptor.getTransB();
  if (columns(lhs, transA) != rows(rhs, transB)) // matmul_c2
    return emitOptionalError(location, "contracted dimensions differ: ", columns(lhs, transA), " of ", lhs, " and ",
                             rows(rhs, transB), " of ", rhs);
  auto shape = broadcastShapes(lhs.getShape().drop_back(2), rhs.getShape().drop_back(2));
  if (!shape) // matmul_c3
    return emitOptionalError(location, "leading dimensions of ", lhs, " and ", rhs, " do not broadcast");
  shape->push_back(rows(lhs, transA));
  shape->push_back(columns(rhs, transB));
  if (bias && tensor(bias) != RankedTensorType::get(shape->back(), lhs.getElementType())) // matmul_c4
    return emitOptionalError(location, "bias ", bias.getType(), " must be a vector of ", shape->back(), " ",
                             lhs.getElementType());
  return addWidened(location, lhs.clone(*shape), wide, types); // matmul_c5
}

LogicalResult MatmulOp::inferReturnTypes(MLIRContext *, Where location, Adaptor adaptor, Types &types) {
  return inferProduct(location, adaptor, adaptor.getBias(), adaptor.getWide(), types);
}

LogicalResult MatmulGeluTanhOp::inferReturnTypes(MLIRContext *, Where location, Adaptor adaptor, Types &types) {
  if (failed(inferProduct(location, adaptor, adaptor.getBias(), /*wide=*/false, types))) // matmul_gelu_tanh_c1
    return failure();
  types.push_back(types.front());
  return success();
}

LogicalResult MatmulGeluTanhGradOp::inferReturnTypes(MLIRContext *, Where location, Adaptor adaptor, Types &types) {
  if (failed(inferProduct(location, adaptor, /*bias=*/Value(), /*wide=*/false, types)))
    return failure();
  if (adaptor.getInput().getType() != types.front()) // matmul_gelu_tanh_grad_c1
    return emitOptionalError(location, "input ", adaptor.getInput().getType(), " must have the product's type ",
                             types.front());
  return success();
}

LogicalResult LinearWeightGradOp::inferReturnTypes(MLIRContext *, Where location, Adaptor adaptor, Types &types) {
  auto gradient = tensor(adaptor.getGradient()), input = tensor(adaptor.getInput());
  if (gradient.getRank() != 2 || input.getRank() != 2 || gradient.getDimSize(0) != input.getDimSize(0) ||
      gradient.getElementType() != input.getElementType()) // linear_weight_grad_c1
    return emitOptionalError(location, "gradient ", gradient, " and input ", input,
                             " must be matrices of as many rows and of one element type");
  const int64_t columns = gradient.getDimSize(1), inputs = input.getDimSize(1);
  const int64_t weight[] = {adaptor.getTransposed() ? columns : inputs, adaptor.getTransposed() ? inputs : columns};
  if (failed(addWidened(location, gradient.clone(weight), adaptor.getWide(), types))) // linear_weight_grad_c2
    return failure();
  return addWidened(location, gradient.clone(columns), adaptor.getWide(), types);
}

static bool isFp8Format(StringRef format) { return format == "e4m3" || format == "e5m2"; }
static bool isFp8Block(std::optional<StringRef> block) { return !block || *block == "1x128" || *block == "128x128"; }

/// The shape of the scales of codes [lines, depth], as kernels/Float8.h lays them out; none: one for all.
static SmallVector<int64_t> scaleShape(std::optional<StringRef> block, int64_t lines, int64_t depth) {
  constexpr int64_t edge = 128;
  if (!block)
    return {};
  const int64_t along = llvm::divideCeil(depth, edge);
  return *block == "1x128"
             ? SmallVector<int64_t>{along, lines}
             : SmallVector<int64_t>{int64_t(llvm::divideCeil(lines, edge)), int64_t(llvm::alignTo(along, 4))};
}

LogicalResult QuantizeFp8Op::inferReturnTypes(MLIRContext *context, Where location, Adaptor adaptor, Types &types) {
  auto input = tensor(adaptor.getInput());
  if (input.getRank() != 2) // quantize_fp8_c1
    return emitOptionalError(location, "input ", input, " must be a matrix");
  if (!isFp8Format(adaptor.getFormat())) // quantize_fp8_c2
    return emitOptionalError(location, "format \"", adaptor.getFormat(), "\" is none of \"e4m3\", \"e5m2\"");
  const std::optional<StringRef> block = adaptor.getBlock();
  if (!isFp8Block(block)) // quantize_fp8_c3
    return emitOptionalError(location, "block \"", *block, "\" is none of \"1x128\", \"128x128\"");
  const int64_t rows = input.getDimSize(0), columns = input.getDimSize(1);
  const int64_t codes[] = {adaptor.getTransposed() ? columns : rows, adaptor.getTransposed() ? rows : columns};
  types.push_back(RankedTensorType::get(codes, IntegerType::get(context, 8, IntegerType::Unsigned)));
  types.push_back(RankedTensorType::get(scaleShape(block, codes[0], codes[1]), Float32Type::get(context)));
  return success();
}

LogicalResult Fp8MatmulOp::inferReturnTypes(MLIRContext *context, Where location, Adaptor adaptor, Types &types) {
  auto a = tensor(adaptor.getA()), b = tensor(adaptor.getB());
  if (a.getRank() != 2 || b.getRank() != 2 || a.getDimSize(1) != b.getDimSize(1)) // fp8_matmul_c1
    return emitOptionalError(location, "codes ", a, " and ", b, " must be matrices of as many columns");
  const StringRef formats[] = {adaptor.getAFormat(), adaptor.getBFormat()};
  if (!llvm::all_of(formats, isFp8Format) || !llvm::is_contained(formats, "e4m3")) // fp8_matmul_c2
    return emitOptionalError(location, "formats \"", formats[0], "\" and \"", formats[1],
                             "\" must be \"e4m3\" or \"e5m2\", and one \"e4m3\"");
  const int64_t columns = b.getDimSize(0);
  if (Value bias = adaptor.getBias()) {
    if (shapeOf(bias) != ArrayRef(columns)) // fp8_matmul_c3
      return emitOptionalError(location, "bias ", bias.getType(), " must have the ", columns,
                               " columns of the product");
    if (adaptor.getWide()) // fp8_matmul_c4
      return emitOptionalError(location, "a product that is left in f32 takes no bias");
  }
  const std::optional<StringRef> aBlock = adaptor.getABlock(), bBlock = adaptor.getBBlock();
  if (!isFp8Block(aBlock) || !isFp8Block(bBlock) || aBlock.has_value() != bBlock.has_value() ||
      (aBlock && *aBlock == "128x128" && *bBlock == "128x128")) // fp8_matmul_c5
    return emitOptionalError(location,
                             "blocks must be \"1x128\" or \"128x128\", of a and b or of neither, and one \"1x128\"");
  for (auto [name, scale, block, codes] :
       {std::tuple("a", adaptor.getAScale(), aBlock, a), {"b", adaptor.getBScale(), bBlock, b}})
    if (const auto shape = scaleShape(block, codes.getDimSize(0), codes.getDimSize(1));
        shapeOf(scale) != ArrayRef(shape)) // fp8_matmul_c6
      return emitOptionalError(location, "the scale of ", name, " must have shape [", shape, "], not ",
                               scale.getType());
  const Type element = adaptor.getWide() ? Type(Float32Type::get(context)) : BFloat16Type::get(context);
  types.push_back(RankedTensorType::get({a.getDimSize(0), columns}, element));
  return success();
}

static LogicalResult inferReduction(Where location, Value input, ArrayRef<int64_t> axes, bool wide, Types &types) {
  SmallVector<int64_t> shape(shapeOf(input));
  int64_t previous = -1;
  for (int64_t axis : axes) {
    if (axis <= previous || axis >= int64_t(shape.size())) // reduce_c1
      return emitOptionalError(location, "axes [", axes, "] are not ascending dimensions of ", input.getType());
    previous = axis;
  }
  for (int64_t axis : llvm::reverse(axes))
    shape.erase(shape.begin() + axis);
  return addWidened(location, tensor(input).clone(shape), wide, types); // reduce_c2
}
LogicalResult ReduceSumOp::inferReturnTypes(MLIRContext *, Where location, Adaptor adaptor, Types &types) {
  return inferReduction(location, adaptor.getInput(), adaptor.getAxes(), adaptor.getWide(), types);
}
LogicalResult ReduceMeanOp::inferReturnTypes(MLIRContext *, Where location, Adaptor adaptor, Types &types) {
  return inferReduction(location, adaptor.getInput(), adaptor.getAxes(), adaptor.getWide(), types);
}
LogicalResult ReduceMaxOp::inferReturnTypes(MLIRContext *, Where location, Adaptor adaptor, Types &types) {
  return inferReduction(location, adaptor.getInput(), adaptor.getAxes(), /*wide=*/false, types);
}

//===-- softmax, norms, random numbers -------------------------------------------------===//

static LogicalResult inferSame(Where location, Value input, int64_t axis, Types &types) {
  if (failed(checkAxis(location, axis, input))) // softmax_c1
    return failure();
  types.push_back(input.getType());
  return success();
}
LogicalResult SoftmaxOp::inferReturnTypes(MLIRContext *, Where location, Adaptor adaptor, Types &types) {
  return inferSame(location, adaptor.getInput(), signedAttr(adaptor.getAxis()), types);
}
LogicalResult LogSoftmaxOp::inferReturnTypes(MLIRContext *, Where location, Adaptor adaptor, Types &types) {
  return inferSame(location, adaptor.getInput(), signedAttr(adaptor.getAxis()), types);
}

static LogicalResult inferSoftmaxGrad(Where location, Value output, Value gradient, int64_t axis, Types &types) {
  if (output.getType() != gradient.getType()) // softmax_grad_c1
    return emitOptionalError(location, "output ", output.getType(), " and gradient ", gradient.getType(), " differ");
  return inferSame(location, output, axis, types);
}
LogicalResult SoftmaxGradOp::inferReturnTypes(MLIRContext *, Where location, Adaptor adaptor, Types &types) {
  return inferSoftmaxGrad(location, adaptor.getOutput(), adaptor.getGradient(), signedAttr(adaptor.getAxis()), types);
}
LogicalResult LogSoftmaxGradOp::inferReturnTypes(MLIRContext *, Where location, Adaptor adaptor, Types &types) {
  return inferSoftmaxGrad(location, adaptor.getOutput(), adaptor.getGradient(), signedAttr(adaptor.getAxis()), types);
}

LogicalResult DropoutOp::inferReturnTypes(MLIRContext *, Where location, Adaptor adaptor, Types &types) {
  const double ratio = adaptor.getRatio().convertToDouble();
  if (!(ratio >= 0 && ratio < 1)) // dropout_c1
    return emitOptionalError(location, "ratio must be at least 0 and below 1");
  if (signedAttr(adaptor.getOpId()) < 0) // dropout_c2
    return emitOptionalError(location, "op_id ", signedAttr(adaptor.getOpId()), " is negative");
  types.push_back(adaptor.getInput().getType());
  return success();
}

LogicalResult UniformOp::inferReturnTypes(MLIRContext *, Where location, Adaptor adaptor, Types &types) {
  int64_t count = 1;
  for (int64_t dim : adaptor.getShape())
    if (dim < 0 || llvm::MulOverflow(count, dim, count)) // uniform_c1
      return emitOptionalError(location, "shape [", adaptor.getShape(),
                               "] has a negative dimension or more elements than an i64 counts");
  const Type element = adaptor.getElementType();
  if (!element.isF32() && !element.isF64()) // uniform_c2
    return emitOptionalError(location, "element_type ", element, " is neither f32 nor f64");
  if (signedAttr(adaptor.getOpId()) < 0) // uniform_c3
    return emitOptionalError(location, "op_id ", signedAttr(adaptor.getOpId()), " is negative");
  types.push_back(RankedTensorType::get(adaptor.getShape(), element));
  return success();
}

//===-- losses -------------------------------------------------------------------===//

/// Padding lies behind the classes.
static LogicalResult checkClasses(Where location, std::optional<uint64_t> classes, RankedTensorType logits) {
  if (classes && (*classes == 0 || *classes > uint64_t(logits.getDimSize(1))))
    return emitOptionalError(location, "classes ", *classes, " is not 1 to ", logits.getDimSize(1), ", the columns of ",
                             logits);
  return success();
}

/// The types of a loss and of the log of each row's sum.
template <typename Adaptor> static LogicalResult inferCrossEntropy(Where location, Adaptor adaptor, Types &types) {
  auto logits = tensor(adaptor.getLogits());
  if (logits.getRank() != 2 || shapeOf(adaptor.getLabels()) != logits.getShape().take_front()) // cross_entropy_c1
    return emitOptionalError(location, "logits ", logits, " must be [N, C] and labels ", adaptor.getLabels().getType(),
                             " [N]");
  if (failed(checkClasses(location, adaptor.getClasses(), logits))) // cross_entropy_c2
    return failure();
  RankedTensorType rows = statisticsType(logits).clone(logits.getShape().take_front());
  types.append({rows.clone(ArrayRef<int64_t>{}), rows});
  return success();
}

LogicalResult CrossEntropyOp::inferReturnTypes(MLIRContext *, Where location, Adaptor adaptor, Types &types) {
  return inferCrossEntropy(location, adaptor, types);
}

LogicalResult CrossEntropyWithGradOp::inferReturnTypes(MLIRContext *, Where location, Adaptor adaptor, Types &types) {
  if (failed(inferCrossEntropy(location, adaptor, types)))
    return failure();
  if (adaptor.getGradient().getType() != types.front()) // cross_entropy_with_grad_c1
    return emitOptionalError(location, "gradient ", adaptor.getGradient().getType(), " has not the type of the loss, ",
                             types.front());
  types.push_back(adaptor.getLogits().getType());
  return success();
}

LogicalResult CrossEntropyGradOp::inferReturnTypes(MLIRContext *, Where location, Adaptor adaptor, Types &types) {
  auto logits = tensor(adaptor.getLogits());
  const bool fits = logits.getRank() == 2 && shapeOf(adaptor.getLabels()) == logits.getShape().take_front() &&
                    tensor(adaptor.getLse()) == statisticsType(logits).clone(logits.getShape().take_front()) &&
                    tensor(adaptor.getGradient()) == statisticsType(logits).clone(ArrayRef<int64_t>{});
  if (!fits) // cross_entropy_grad_c1
    return emitOptionalError(location, "operands are not those of a cross_entropy of ", logits);
  if (failed(checkClasses(location, adaptor.getClasses(), logits))) // cross_entropy_grad_c2
    return failure();
  types.push_back(logits);
  return success();
}

//===-- the optimizer's scalars ----------------------------------------------------===//

static RankedTensorType f64(MLIRContext *context, ArrayRef<int64_t> shape = {}) {
  return RankedTensorType::get(shape, Float64Type::get(context));
}

LogicalResult LearningRateOp::inferReturnTypes(MLIRContext *context, Where location, Adaptor adaptor, Types &types) {
  if (!llvm::is_contained({"constant", "WarmupLR", "WarmupDecayLR", "WarmupCosineLR", "LRRangeTest", "OneCycle"},
                          adaptor.getSchedule()))
    return emitOptionalError(location, "schedule \"", adaptor.getSchedule(), // learning_rate_c1
                             "\" is none of constant, WarmupLR, WarmupDecayLR, WarmupCosineLR, LRRangeTest, OneCycle");
  types.push_back(f64(context));
  return success();
}

LogicalResult CycledMomentumOp::inferReturnTypes(MLIRContext *context, Where, Adaptor, Types &types) {
  types.push_back(f64(context));
  return success();
}

/// Elements of a partial sum of squares.
static bool isNormBlock(int64_t block) { return block >= 64 && block <= 1024 && llvm::isPowerOf2_64(uint64_t(block)); }

LogicalResult BlockSumSquaresOp::inferReturnTypes(MLIRContext *context, Where location, Adaptor adaptor, Types &types) {
  const int64_t block = adaptor.getBlock();
  if (!isNormBlock(block)) // block_sum_squares_c1
    return emitOptionalError(location, "block ", block, " must be a power of two from 64 to 1024");
  types.push_back(f64(context, {int64_t(llvm::divideCeil(tensor(adaptor.getInput()).getNumElements(), block))}));
  return success();
}

LogicalResult GlobalNormOp::inferReturnTypes(MLIRContext *context, Where location, Adaptor adaptor, Types &types) {
  for (Value partials : adaptor.getPartials())
    if (tensor(partials).getRank() != 1 || !tensor(partials).getElementType().isF64()) // global_norm_c1
      return emitOptionalError(location, "partial sums ", partials.getType(), " must be an f64 vector");
  const ArrayRef<int64_t> blocks = adaptor.getBlocks();
  if (!blocks.empty() && blocks.size() != adaptor.getPartials().size()) // global_norm_c2
    return emitOptionalError(location, "there are ", blocks.size(), " blocks for ", adaptor.getPartials().size(),
                             " operands");
  for (auto [block, partials] : llvm::zip(blocks, adaptor.getPartials()))
    if (!isNormBlock(block) || tensor(partials).getNumElements() % (1024 / block) != 0) // global_norm_c2
      return emitOptionalError(location, "block ", block, " must be a power of two from 64 to 1024, and ",
                               partials.getType(), " make whole sums of 1024");
  types.push_back(f64(context));
  return success();
}

LogicalResult ClipFactorOp::inferReturnTypes(MLIRContext *context, Where location, Adaptor adaptor, Types &types) {
  if (!(adaptor.getMaxNorm().convertToDouble() > 0)) // clip_factor_c1
    return emitOptionalError(location, "max_norm must be above 0");
  types.push_back(f64(context));
  return success();
}

LogicalResult GradientOp::verify() {
  if (!llvm::equal(getXs().getTypes(), getResultTypes())) // gradient_c1
    return emitOpError("must have a result for each of its ") << getXs().size() << " variables, of its type";
  return success();
}
