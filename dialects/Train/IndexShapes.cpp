//===- IndexShapes.cpp - result types of gathers, scatters and searches ----===//
#include "dialects/Train/Train.h"

using namespace mlir;
using namespace ds::train;

using Types = SmallVectorImpl<Type>;
using Where = std::optional<Location>;

static RankedTensorType tensor(Value value) { return cast<RankedTensorType>(value.getType()); }

static LogicalResult checkAxis(Where location, uint64_t axis, Value value) {
  if (int64_t(axis) < 0 || int64_t(axis) >= tensor(value).getRank())
    return emitOptionalError(location, "axis ", int64_t(axis), " is not a dimension of ", value.getType());
  return success();
}

static LogicalResult checkIndices(Where location, Value data, Value indices, uint64_t axis) {
  if (failed(checkAxis(location, axis, data))) // gather_elements_c1, scatter_elements_c1
    return failure();
  bool fits = tensor(indices).getRank() == tensor(data).getRank();
  for (int64_t d = 0; fits && d < tensor(data).getRank(); ++d)
    fits = d == int64_t(axis) || tensor(indices).getDimSize(d) <= tensor(data).getDimSize(d);
  if (!fits) // gather_elements_c2, scatter_elements_c2
    return emitOptionalError(location, "indices ", indices.getType(), " do not fit ", data.getType(), " along axis ",
                             int64_t(axis));
  return success();
}

LogicalResult GatherElementsOp::inferReturnTypes(MLIRContext *, Where location, Adaptor adaptor, Types &types) {
  if (failed(checkIndices(location, adaptor.getData(), adaptor.getIndices(), adaptor.getAxis())))
    return failure();
  types.push_back(tensor(adaptor.getData()).clone(tensor(adaptor.getIndices()).getShape())); // gather_elements_c3
  return success();
}

LogicalResult ScatterElementsOp::inferReturnTypes(MLIRContext *, Where location, Adaptor adaptor, Types &types) {
  auto data = tensor(adaptor.getData());
  if (failed(checkIndices(location, adaptor.getData(), adaptor.getIndices(), adaptor.getAxis())))
    return failure();
  if (tensor(adaptor.getUpdates()) != data.clone(tensor(adaptor.getIndices()).getShape())) // scatter_elements_c3
    return emitOptionalError(location, "updates ", adaptor.getUpdates().getType(), " must have the shape of indices ",
                             adaptor.getIndices().getType(), " and the element type of ", data);
  if (data.getElementType().isInteger(1) && adaptor.getReduction() != ScatterReduction::Replace) // scatter_elements_c4
    return emitOptionalError(location, "reduction ", stringifyScatterReduction(adaptor.getReduction()),
                             " does not exist on ", data);
  types.push_back(data);
  return success();
}

LogicalResult ArgMaxOp::inferReturnTypes(MLIRContext *context, Where location, Adaptor adaptor, Types &types) {
  auto input = tensor(adaptor.getInput());
  if (failed(checkAxis(location, adaptor.getAxis(), adaptor.getInput()))) // arg_max_c1
    return failure();
  SmallVector<int64_t> shape(input.getShape());
  if (shape[adaptor.getAxis()] == 0) // arg_max_c1
    return emitOptionalError(location, "axis ", int64_t(adaptor.getAxis()), " of ", input, " has no elements");
  shape.erase(shape.begin() + int64_t(adaptor.getAxis()));
  types.push_back(RankedTensorType::get(shape, IntegerType::get(context, 64)));
  return success();
}

LogicalResult TopKOp::inferReturnTypes(MLIRContext *context, Where location, Adaptor adaptor, Types &types) {
  auto input = tensor(adaptor.getInput());
  if (input.getRank() == 0) // top_k_c1
    return emitOptionalError(location, input, " has no dimension");
  SmallVector<int64_t> shape(input.getShape());
  const auto k = int64_t(adaptor.getK());
  if (k < 0 || k > shape.back()) // top_k_c2
    return emitOptionalError(location, "k is ", k, " and must be from 0 to ", shape.back(), ", the last dimension of ",
                             input);
  shape.back() = k;
  types.push_back(input.clone(shape));
  types.push_back(RankedTensorType::get(shape, IntegerType::get(context, 64)));
  return success();
}

LogicalResult CumSumOp::inferReturnTypes(MLIRContext *, Where location, Adaptor adaptor, Types &types) {
  if (failed(checkAxis(location, adaptor.getAxis(), adaptor.getInput()))) // cumsum_c1
    return failure();
  types.push_back(adaptor.getInput().getType());
  return success();
}
