//===- Folds.cpp - what canonicalization may drop without changing a bit ----===//
#include "dialects/Train/StopGradient.h"
#include "dialects/Train/Train.h"

#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace ds::train;

OpFoldResult ConstantOp::fold(FoldAdaptor) { return getValue(); }

/// Whether every element of the constant is `value`. Integers compare as integers.
static bool isSplat(Attribute attribute, double value) {
  auto elements = dyn_cast_if_present<DenseElementsAttr>(attribute);
  if (!elements || !elements.isSplat())
    return false;
  if (isa<FloatType>(elements.getElementType()))
    return elements.getSplatValue<APFloat>().isExactlyValue(value); // -0 is not 0: x - (-0) turns -0 into 0
  return elements.getElementType().isInteger(64) && double(elements.getSplatValue<APInt>().getSExtValue()) == value;
}

/// `operand` if it can stand for a result of type `type`.
static OpFoldResult same(Value operand, Type type) { return operand.getType() == type ? operand : Value(); }

// x + 0 is not folded for floats: it turns -0 into 0. x * 1, x / 1, x ** 1 are exact.
OpFoldResult AddOp::fold(FoldAdaptor adaptor) {
  const bool exact = !isa<FloatType>(getElementTypeOrSelf(getType()));
  return exact && isSplat(adaptor.getRhs(), 0) ? same(getLhs(), getType()) : OpFoldResult();
}
OpFoldResult SubOp::fold(FoldAdaptor adaptor) {
  return isSplat(adaptor.getRhs(), 0) ? same(getLhs(), getType()) : OpFoldResult();
}
OpFoldResult MulOp::fold(FoldAdaptor adaptor) {
  if (isSplat(adaptor.getRhs(), 1))
    return same(getLhs(), getType());
  return isSplat(adaptor.getLhs(), 1) ? same(getRhs(), getType()) : OpFoldResult();
}
OpFoldResult DivOp::fold(FoldAdaptor adaptor) {
  return isSplat(adaptor.getRhs(), 1) ? same(getLhs(), getType()) : OpFoldResult();
}
OpFoldResult PowOp::fold(FoldAdaptor adaptor) {
  return isSplat(adaptor.getRhs(), 1) ? same(getLhs(), getType()) : OpFoldResult();
}
OpFoldResult CastOp::fold(FoldAdaptor) {
  if (stopsGradient(*this))
    return {};
  // All that 16 bits hold, f32 holds too.
  if (auto inner = getInput().getDefiningOp<CastOp>())
    if (!stopsGradient(inner) && inner.getInput().getType() == getType() && isNarrowFloat(getElementType()) &&
        inner.getElementType().isF32())
      return inner.getInput();
  return same(getInput(), getType());
}

OpFoldResult ReshapeOp::fold(FoldAdaptor adaptor) {
  if (getInput().getType() == getType())
    return getInput();
  if (auto elements = dyn_cast_if_present<DenseElementsAttr>(adaptor.getInput()))
    return elements.reshape(getType());
  if (auto inner = getInput().getDefiningOp<ReshapeOp>()) {
    setOperand(inner.getInput());
    return getResult();
  }
  return {};
}

OpFoldResult TransposeOp::fold(FoldAdaptor) {
  ArrayRef<int64_t> permutation = getPerm();
  if (llvm::all_of(llvm::enumerate(permutation), [](auto dim) { return int64_t(dim.index()) == dim.value(); }))
    return getInput();
  if (auto inner = getInput().getDefiningOp<TransposeOp>()) {
    SmallVector<int64_t> composed;
    for (int64_t dim : permutation)
      composed.push_back(inner.getPerm()[dim]);
    setPerm(composed);
    setOperand(inner.getInput());
    return getResult();
  }
  return {};
}

OpFoldResult BroadcastOp::fold(FoldAdaptor) { return same(getInput(), getType()); }

OpFoldResult SliceOp::fold(FoldAdaptor) { return same(getInput(), getType()); }
