//===- Elementwise.cpp - types of elementwise ops, the fused op's verifier --===//
#include "dialects/Train/Train.h"

using namespace mlir;
using namespace ds::train;

std::optional<SmallVector<int64_t>> ds::train::broadcastShapes(ArrayRef<int64_t> lhs, ArrayRef<int64_t> rhs) {
  const size_t rank = std::max(lhs.size(), rhs.size());
  SmallVector<int64_t> shape(rank);
  for (size_t i = 0; i < rank; ++i) { // i counts from the last dimension
    const int64_t a = i < lhs.size() ? lhs[lhs.size() - 1 - i] : 1;
    const int64_t b = i < rhs.size() ? rhs[rhs.size() - 1 - i] : 1;
    if (a != b && a != 1 && b != 1)
      return std::nullopt;
    shape[rank - 1 - i] = a == 1 ? b : a;
  }
  return shape;
}

/// The common shape of `values`, their element types being checked by the caller.
static FailureOr<SmallVector<int64_t>> inferBroadcast(std::optional<Location> location, ValueRange values) {
  SmallVector<int64_t> shape;
  for (Value value : values) {
    ArrayRef<int64_t> next = cast<RankedTensorType>(value.getType()).getShape();
    auto broadcast = broadcastShapes(shape, next);
    if (!broadcast) { // elementwise_c2
      (void)emitOptionalError(location, "operands of shapes [", shape, "] and [", next, "] do not broadcast");
      return failure();
    }
    shape = *broadcast;
  }
  return shape;
}

static LogicalResult sameElement(std::optional<Location> location, Value lhs, Value rhs) {
  Type a = getElementTypeOrSelf(lhs.getType()), b = getElementTypeOrSelf(rhs.getType());
  if (a != b) // elementwise_c1
    return emitOptionalError(location, "operands have element types ", a, " and ", b, "; they must be equal");
  return success();
}

static LogicalResult inferBinary(std::optional<Location> location, Value lhs, Value rhs, Type element,
                                 SmallVectorImpl<Type> &types) {
  if (failed(sameElement(location, lhs, rhs)))
    return failure();
  auto shape = inferBroadcast(location, {lhs, rhs});
  if (failed(shape))
    return failure();
  types.push_back(RankedTensorType::get(*shape, element ? element : getElementTypeOrSelf(lhs.getType())));
  return success();
}

#define DS_INFER_BINARY(OP, ELEMENT)                                                                                   \
  LogicalResult OP::inferReturnTypes(MLIRContext *context, std::optional<Location> location, Adaptor adaptor,          \
                                     SmallVectorImpl<Type> &types) {                                                   \
    return inferBinary(location, adaptor.getLhs(), adaptor.getRhs(), ELEMENT, types);                                  \
  }
DS_INFER_BINARY(AddOp, Type())
DS_INFER_BINARY(SubOp, Type())
DS_INFER_BINARY(MulOp, Type())
DS_INFER_BINARY(DivOp, Type())
DS_INFER_BINARY(PowOp, Type())
DS_INFER_BINARY(MaxOp, Type())
DS_INFER_BINARY(MinOp, Type())
DS_INFER_BINARY(AndOp, Type())
DS_INFER_BINARY(OrOp, Type())
DS_INFER_BINARY(XorOp, Type())
DS_INFER_BINARY(EqualOp, IntegerType::get(context, 1))
DS_INFER_BINARY(LessOp, IntegerType::get(context, 1))
DS_INFER_BINARY(LessEqualOp, IntegerType::get(context, 1))
DS_INFER_BINARY(GreaterOp, IntegerType::get(context, 1))
DS_INFER_BINARY(GreaterEqualOp, IntegerType::get(context, 1))
#undef DS_INFER_BINARY

LogicalResult SelectOp::inferReturnTypes(MLIRContext *, std::optional<Location> location, Adaptor adaptor,
                                         SmallVectorImpl<Type> &types) {
  if (failed(sameElement(location, adaptor.getOnTrue(), adaptor.getOnFalse())))
    return failure();
  auto shape = inferBroadcast(location, adaptor.getOperands());
  if (failed(shape))
    return failure();
  types.push_back(RankedTensorType::get(*shape, getElementTypeOrSelf(adaptor.getOnTrue().getType())));
  return success();
}

#define DS_INFER_UNARY(OP)                                                                                             \
  LogicalResult OP::inferReturnTypes(MLIRContext *, std::optional<Location>, Adaptor adaptor,                          \
                                     SmallVectorImpl<Type> &types) {                                                   \
    types.push_back(adaptor.getInput().getType());                                                                     \
    return success();                                                                                                  \
  }
DS_INFER_UNARY(NegOp)
DS_INFER_UNARY(AbsOp)
DS_INFER_UNARY(SqrtOp)
DS_INFER_UNARY(RsqrtOp)
DS_INFER_UNARY(ReciprocalOp)
DS_INFER_UNARY(ExpOp)
DS_INFER_UNARY(LogOp)
DS_INFER_UNARY(Log1pOp)
DS_INFER_UNARY(Expm1Op)
DS_INFER_UNARY(GeluTanhOp)
DS_INFER_UNARY(GeluTanhSlopeOp)
DS_INFER_UNARY(ErfOp)
DS_INFER_UNARY(TanhOp)
DS_INFER_UNARY(SigmoidOp)
DS_INFER_UNARY(ReluOp)
DS_INFER_UNARY(SinOp)
DS_INFER_UNARY(CosOp)
DS_INFER_UNARY(AtanOp)
DS_INFER_UNARY(SignOp)
DS_INFER_UNARY(FloorOp)
DS_INFER_UNARY(CeilOp)
DS_INFER_UNARY(RoundOp)
DS_INFER_UNARY(NotOp)
#undef DS_INFER_UNARY

LogicalResult IsNanOp::inferReturnTypes(MLIRContext *context, std::optional<Location>, Adaptor adaptor,
                                        SmallVectorImpl<Type> &types) {
  types.push_back(cast<RankedTensorType>(adaptor.getInput().getType()).clone(IntegerType::get(context, 1)));
  return success();
}

LogicalResult CastOp::inferReturnTypes(MLIRContext *, std::optional<Location> location, Adaptor adaptor,
                                       SmallVectorImpl<Type> &types) {
  if (!isElementType(adaptor.getElementType())) // cast_c1
    return emitOptionalError(location, adaptor.getElementType(), " is none of f32, f64, bf16, f16, i64, i32, i1");
  types.push_back(cast<RankedTensorType>(adaptor.getInput().getType()).clone(adaptor.getElementType()));
  return success();
}

LogicalResult FusedOp::verify() {
  Block &body = getBody().front();
  auto yield = dyn_cast<YieldOp>(body.back());
  if (!yield || body.getArgumentTypes() != getInputs().getTypes() ||
      yield.getValues().getTypes() != getOutputs().getTypes()) // fused_c1
    return emitOpError("body takes (") << body.getArgumentTypes() << ") and yields ("
                                       << (yield ? TypeRange(yield.getValues().getTypes()) : TypeRange())
                                       << "); the op has " << getInputs().getTypes() << " and "
                                       << getOutputs().getTypes();
  for (Operation &op : body.without_terminator())
    if (!op.hasTrait<Elementwise>() && !isa<ConstantOp>(op)) // fused_c2
      return emitOpError("body may hold elementwise ops and constants, not '") << op.getName() << "'";
  for (Type type : getOutputs().getTypes())
    if (cast<RankedTensorType>(type).getShape() !=
        cast<RankedTensorType>(getOutputs().getTypes().front()).getShape()) // fused_c3
      return emitOpError("results have different shapes: ") << getOutputs().getTypes();
  return success();
}
