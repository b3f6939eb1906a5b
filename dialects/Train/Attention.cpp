//===- Attention.cpp - types and gradient of attention ----------------------===//
#include "dialects/Train/Gradients.h"

using namespace mlir;
using namespace ds::train;

using Types = SmallVectorImpl<Type>;
using Where = std::optional<Location>;

/// What the operands of an attention have in common; yields the types of result and lse. `bshd`: heads are the third
/// dimension.
static LogicalResult checkOperands(Where location, RankedTensorType query, RankedTensorType key, RankedTensorType value,
                                   Value mask, bool bshd, Types &types) {
  const unsigned head = bshd ? 2 : 1, row = bshd ? 1 : 2;
  if (query.getRank() != 4 || key.getRank() != 4 || value.getRank() != 4 || // attention_c1
      query.getElementType() != key.getElementType() || query.getElementType() != value.getElementType() ||
      query.getDimSize(0) != key.getDimSize(0) || query.getDimSize(3) != key.getDimSize(3) ||
      key.getShape().take_front(3) != value.getShape().take_front(3))
    return emitOptionalError(
        location, "query ", query, ", key ", key, " and value ", value,
        bshd ? " are not [batch, queries, heads, depth], [batch, keys, groups, depth] and [batch, keys, groups, "
               "columns] "
               "of one element type"
             : " are not [batch, heads, queries, depth], [batch, groups, keys, depth] and [batch, groups, "
               "keys, columns] of one element type");
  if (key.getDimSize(head) < 1 ||
      query.getDimSize(head) % key.getDimSize(head) != 0) // attention_c2, packed_attention_c2
    return emitOptionalError(location, query.getDimSize(head), " heads of query are not a multiple of ",
                             key.getDimSize(head), " groups of key and value");
  const int64_t scores[] = {query.getDimSize(0), query.getDimSize(head), query.getDimSize(row), key.getDimSize(row)};
  if (mask) { // attention_c3, packed_attention_c3
    auto type = tensorType(mask);
    auto shape = broadcastShapes(type.getShape(), scores);
    if (!shape || ArrayRef<int64_t>(*shape) != ArrayRef<int64_t>(scores) ||
        (type.getElementType() != query.getElementType() && !type.getElementType().isInteger(1)))
      return emitOptionalError(location, "mask ", type, " is not of i1 or ", query.getElementType(),
                               " and does not broadcast to [", ArrayRef<int64_t>(scores), "]");
  }
  types.push_back(query.clone({query.getDimSize(0), query.getDimSize(1), query.getDimSize(2), value.getDimSize(3)}));
  types.push_back(statisticsType(query).clone(ArrayRef<int64_t>(scores).drop_back()));
  return success();
}

/// Of attention and of its gradient.
template <typename Adaptor> static LogicalResult checkApart(Where location, Adaptor adaptor, Types &types) {
  return checkOperands(location, tensorType(adaptor.getQuery()), tensorType(adaptor.getKey()),
                       tensorType(adaptor.getValue()), adaptor.getMask(), adaptor.getBshd(), types);
}

/// Of packed attention and of its gradient: those of the query, key and value in it.
template <typename Adaptor> static LogicalResult checkPacked(Where location, Adaptor adaptor, Types &types) {
  auto qkv = tensorType(adaptor.getQkv());
  const auto heads = int64_t(adaptor.getHeads());
  const int64_t groups = qkv.getRank() == 4 ? (qkv.getDimSize(2) - heads) / 2 : 0;
  if (heads < 1 || groups < 1 || qkv.getDimSize(2) != heads + 2 * groups) // packed_attention_c1
    return emitOptionalError(location, "qkv ", qkv, " is not [batch, rows, heads + 2 * groups, depth] of ", heads,
                             " heads");
  const auto part = [&](int64_t count) {
    return qkv.clone({qkv.getDimSize(0), qkv.getDimSize(1), count, qkv.getDimSize(3)});
  };
  return checkOperands(location, part(heads), part(groups), part(groups), adaptor.getMask(), /*bshd=*/true, types);
}

/// `forward` has the types of result and lse.
template <typename Adaptor>
static LogicalResult checkGradient(Where location, Adaptor adaptor, ArrayRef<Type> forward) {
  if (adaptor.getResult().getType() != forward[0] || adaptor.getGradient().getType() != forward[0] ||
      adaptor.getLse().getType() != forward[1]) // attention_grad_c1, packed_attention_grad_c1
    return emitOptionalError(location, "gradient ", adaptor.getGradient().getType(), ", result ",
                             adaptor.getResult().getType(), " and lse ", adaptor.getLse().getType(), " must be ",
                             forward[0], ", ", forward[0], " and ", forward[1]);
  return success();
}

LogicalResult AttentionOp::inferReturnTypes(MLIRContext *, Where location, Adaptor adaptor, Types &types) {
  return checkApart(location, adaptor, types);
}

LogicalResult PackedAttentionOp::inferReturnTypes(MLIRContext *, Where location, Adaptor adaptor, Types &types) {
  return checkPacked(location, adaptor, types);
}

LogicalResult AttentionGradOp::inferReturnTypes(MLIRContext *, Where location, Adaptor adaptor, Types &types) {
  SmallVector<Type> forward;
  types.append({adaptor.getQuery().getType(), adaptor.getKey().getType(), adaptor.getValue().getType()});
  return success(succeeded(checkApart(location, adaptor, forward)) &&
                 succeeded(checkGradient(location, adaptor, forward)));
}

LogicalResult PackedAttentionGradOp::inferReturnTypes(MLIRContext *, Where location, Adaptor adaptor, Types &types) {
  SmallVector<Type> forward;
  types.push_back(adaptor.getQkv().getType());
  return success(succeeded(checkPacked(location, adaptor, forward)) &&
                 succeeded(checkGradient(location, adaptor, forward)));
}

/// Whether there is a gradient of an attention, packed or not: the mask is its last operand.
template <typename OpTy>
static LogicalResult checkDifferentiable(OpTy op, ValueRange gradients, const BitVector &needed) {
  if (gradients[1])
    return op.emitOpError("has no gradient through its log sums of exponentials");
  if (op.getMask() && needed[op->getNumOperands() - 1]) // attention_c4, packed_attention_c4
    return op.emitOpError(
        "has no gradient for its mask, which a trainable parameter reaches; leave out ds-regroup-attention");
  return success();
}

LogicalResult AttentionOp::buildGradient(OpBuilder &plain, ValueRange gradients, const BitVector &needed,
                                         SmallVectorImpl<Value> &out) {
  if (failed(checkDifferentiable(*this, gradients, needed)))
    return failure();
  ImplicitLocOpBuilder b(getLoc(), plain);
  auto grad = AttentionGradOp::create(b, gradients[0], getQuery(), getKey(), getValue(), getMask(), getResult(),
                                      getLse(), getScale(), getCausal(), getBshd());
  for (unsigned i = 0; i < 3; ++i)
    if (needed[i])
      out[i] = grad->getResult(i);
  return success();
}

LogicalResult PackedAttentionOp::buildGradient(OpBuilder &plain, ValueRange gradients, const BitVector &needed,
                                               SmallVectorImpl<Value> &out) {
  if (failed(checkDifferentiable(*this, gradients, needed)))
    return failure();
  if (needed[0])
    out[0] = PackedAttentionGradOp::create(plain, getLoc(), gradients[0], getQkv(), getMask(), getResult(), getLse(),
                                           getHeads(), getScale(), getCausal());
  return success();
}
