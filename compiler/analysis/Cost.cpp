//===- Cost.cpp - how long ops take, roughly ----------------------------------===//
#include "compiler/analysis/Cost.h"

#include "dialects/Train/Train.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace ds;

namespace {

constexpr double flopsPerSecond = 1e11, bytesPerSecond = 1e10;

RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }
double elements(Value value) { return double(typeOf(value).getNumElements()); }
double bytes(Value value) { return elements(value) * typeOf(value).getElementTypeBitWidth() / 8; }

} // namespace

double ds::productFlops(Operation *op) {
  // A weight's elements over its output channels are the products of one output element; attention multiplies each
  // element of the queries by every key, and every value: twice in the forward, five times in the backward.
  return llvm::TypeSwitch<Operation *, double>(op)
      .Case([](train::MatmulOp matmul) {
        RankedTensorType lhs = typeOf(matmul.getLhs());
        return 2 * elements(matmul.getResult()) * lhs.getDimSize(lhs.getRank() - (matmul.getTransposeLhs() ? 2 : 1));
      })
      .Case([](train::ConvOp conv) {
        return 2 * elements(conv.getResult()) * elements(conv.getWeight()) / typeOf(conv.getWeight()).getDimSize(0);
      })
      .Case([](train::ConvInputGradOp conv) {
        return 2 * elements(conv.getGradient()) * elements(conv.getWeight()) / typeOf(conv.getWeight()).getDimSize(0);
      })
      .Case([](train::ConvWeightGradOp conv) {
        return 2 * elements(conv.getGradient()) * elements(conv.getResult()) / typeOf(conv.getResult()).getDimSize(0);
      })
      .Case([](train::AttentionOp attention) {
        RankedTensorType key = typeOf(attention.getKey());
        return 4 * elements(attention.getQuery()) * key.getDimSize(key.getRank() - 2);
      })
      .Case([](train::AttentionGradOp attention) {
        RankedTensorType key = typeOf(attention.getKey());
        return 10 * elements(attention.getQuery()) * key.getDimSize(key.getRank() - 2);
      })
      .Default([](Operation *) { return 0.0; });
}

double ds::seconds(Operation *op) {
  if (isa<train::ReadOp, train::ReshapeOp, train::ConstantOp, train::LossGradientOp>(op))
    return 0;
  double moved = 0;
  for (Value operand : op->getOperands())
    moved += bytes(operand);
  for (Value result : op->getResults())
    moved += bytes(result);
  return productFlops(op) / flopsPerSecond + moved / bytesPerSecond;
}
