//===- ChannelNorm.cpp - normalization of channels by given statistics ----===//
#include "dialects/Train/ChannelNorm.h"

#include "dialects/Train/Gradients.h"

using namespace mlir;
using namespace ds::train;

Value ds::train::normalizeChannels(ImplicitLocOpBuilder &b, Value x, Value scale, Value shift, Value mean,
                                   Value variance, double epsilon) {
  const Type element = getElementTypeOrSelf(x.getType()), wide = getElementTypeOrSelf(mean.getType());
  if (element != wide) // x has 16 bits; statistics are not
    x = CastOp::create(b, x, TypeAttr::get(wide));
  SmallVector<int64_t> column(tensorType(x).getRank() - 1, 1); // [C, 1, ...] broadcasts over samples and places
  column.front() = tensorType(scale).getNumElements();
  Value spread = AddOp::create(b, variance, scalar(b, variance, epsilon));
  Value factor = MulOp::create(b, RsqrtOp::create(b, spread), scale);
  Value centered = SubOp::create(b, x, reshapeTo(b, mean, column));
  Value scaled = MulOp::create(b, centered, reshapeTo(b, factor, column));
  Value result = AddOp::create(b, scaled, reshapeTo(b, shift, column));
  return element != wide ? CastOp::create(b, result, TypeAttr::get(element)).getResult() : result;
}
