//===- ShapesNorm.cpp - result types of layer_norm, rms_norm, batch_norm --===//
#include "dialects/Train/Train.h"

using namespace mlir;
using namespace ds::train;

using Types = SmallVectorImpl<Type>;
using Where = std::optional<Location>;

static RankedTensorType tensor(Value value) { return cast<RankedTensorType>(value.getType()); }

/// One number for each row of `input` that `scale` scales; null where `scale` does not end `input`'s shape.
static RankedTensorType rowsType(RankedTensorType input, RankedTensorType scale) {
  ArrayRef<int64_t> whole = input.getShape(), end = scale.getShape();
  if (end.empty() || end.size() > whole.size() || whole.take_back(end.size()) != end ||
      statisticsType(input).getElementType() != scale.getElementType())
    return {};
  return scale.clone(whole.drop_back(end.size()));
}

template <typename Adaptor> static LogicalResult inferLayerNorm(Where location, Adaptor adaptor, Types &types) {
  auto input = tensor(adaptor.getInput()), scale = tensor(adaptor.getScale());
  auto rows = rowsType(input, scale);
  if (!rows || scale != adaptor.getShift().getType()) // layer_norm_c1
    return emitOptionalError(location, "scale ", scale, " and shift ", adaptor.getShift().getType(),
                             " must both be the trailing dimensions of ", input);
  types.append({input, rows, rows}); // layer_norm_c2
  return success();
}

/// The type of a sum, behind the norm's results, and of what it is rounded to.
template <typename Adaptor> static LogicalResult inferSum(Where location, Adaptor adaptor, Types &types) {
  auto input = tensor(adaptor.getInput()), sum = statisticsType(input);
  if (adaptor.getResidual().getType() != sum) // layer_norm_of_sum_c1, rms_norm_of_sum_c1
    return emitOptionalError(location, "residual ", adaptor.getResidual().getType(), " is not ", sum,
                             ", in which sums of ", input, " are made");
  types.push_back(sum);
  if (sum != input)
    types.push_back(input);
  return success();
}

LogicalResult LayerNormOp::inferReturnTypes(MLIRContext *, Where location, Adaptor adaptor, Types &types) {
  return inferLayerNorm(location, adaptor, types);
}

LogicalResult LayerNormOfSumOp::inferReturnTypes(MLIRContext *, Where location, Adaptor adaptor, Types &types) {
  if (failed(inferLayerNorm(location, adaptor, types)))
    return failure();
  return inferSum(location, adaptor, types);
}

LogicalResult LayerNormGradOp::inferReturnTypes(MLIRContext *, Where location, Adaptor adaptor, Types &types) {
  auto input = tensor(adaptor.getInput()), scale = tensor(adaptor.getScale());
  auto rows = rowsType(input, scale);
  if (!rows || adaptor.getGradient().getType() != input || adaptor.getMean().getType() != rows ||
      adaptor.getRstd().getType() != rows) // layer_norm_grad_c1
    return emitOptionalError(location, "operands are not those of a layer_norm of ", input, " with scale ", scale);
  if (Value residual = adaptor.getResidual(); residual && residual.getType() != input) // layer_norm_grad_c2
    return emitOptionalError(location, "residual ", residual.getType(), " has not the type of input ", input);
  types.append({input, scale, scale});
  return success();
}

template <typename Adaptor> static LogicalResult inferRmsNorm(Where location, Adaptor adaptor, Types &types) {
  auto input = tensor(adaptor.getInput()), scale = tensor(adaptor.getScale());
  auto rows = rowsType(input, scale);
  if (!rows) // rms_norm_c1
    return emitOptionalError(location, "scale ", scale, " must be the trailing dimensions of ", input);
  types.append({input, rows}); // rms_norm_c2
  return success();
}

LogicalResult RmsNormOp::inferReturnTypes(MLIRContext *, Where location, Adaptor adaptor, Types &types) {
  return inferRmsNorm(location, adaptor, types);
}

LogicalResult RmsNormOfSumOp::inferReturnTypes(MLIRContext *, Where location, Adaptor adaptor, Types &types) {
  if (failed(inferRmsNorm(location, adaptor, types)))
    return failure();
  return inferSum(location, adaptor, types);
}

LogicalResult RmsNormGradOp::inferReturnTypes(MLIRContext *, Where location, Adaptor adaptor, Types &types) {
  auto input = tensor(adaptor.getInput()), scale = tensor(adaptor.getScale());
  auto rows = rowsType(input, scale);
  if (!rows || adaptor.getGradient().getType() != input || adaptor.getRrms().getType() != rows) // rms_norm_grad_c1
    return emitOptionalError(location, "operands are not those of a rms_norm of ", input, " with scale ", scale);
  if (Value residual = adaptor.getResidual(); residual && residual.getType() != input) // rms_norm_grad_c2
    return emitOptionalError(location, "residual ", residual.getType(), " has not the type of input ", input);
  types.append({input, scale});
  return success();
}

/// One number for each channel of `input`; null where it has none.
static RankedTensorType channelsType(RankedTensorType input) {
  return input.getRank() >= 2 ? statisticsType(input).clone({input.getDimSize(1)}) : RankedTensorType();
}

LogicalResult BatchNormOp::inferReturnTypes(MLIRContext *, Where location, Adaptor adaptor, Types &types) {
  auto input = tensor(adaptor.getInput()), channels = channelsType(input);
  if (!channels || adaptor.getScale().getType() != channels || adaptor.getShift().getType() != channels)
    return emitOptionalError(location, "scale ", adaptor.getScale().getType(), " and shift ",
                             adaptor.getShift().getType(), " must be [C] of an input [N, C, ...], which is ",
                             input); // batch_norm_c1
  types.append({input, channels, channels, channels});
  return success();
}

LogicalResult BatchNormGradOp::inferReturnTypes(MLIRContext *, Where location, Adaptor adaptor, Types &types) {
  auto input = tensor(adaptor.getInput()), channels = channelsType(input);
  const Value vectors[] = {adaptor.getScale(), adaptor.getMean(), adaptor.getRstd()};
  if (!channels || adaptor.getGradient().getType() != input ||
      llvm::any_of(vectors, [&](Value value) { return value.getType() != channels; })) // batch_norm_grad_c1
    return emitOptionalError(location, "operands are not those of a batch_norm of ", input);
  types.append({input, channels, channels});
  return success();
}
