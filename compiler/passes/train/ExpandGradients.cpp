//===- ExpandGradients.cpp - train.gradient becomes the backward pass -------===//
//
// For each train.gradient, in program order: reverse mode (ReverseMode.cpp) over the ops before it in its block,
// from a seed of ones. Its ops stand where train.gradient stood; an x that plays no part in y gets zeros. The op is
// ONNX's Gradient (ai.onnx.preview.training): xs are independent of each other, and nothing flows through zs.
//
//===----------------------------------------------------------------------===//
#include "compiler/passes/train/ExpandGradients.h"

#include "compiler/passes/train/Passes.h"
#include "compiler/passes/train/ReverseMode.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace ds {
#define GEN_PASS_DEF_EXPANDGRADIENTS
#include "compiler/passes/train/Passes.h.inc"
} // namespace ds

using namespace mlir;
using namespace ds;

LogicalResult ds::expandGradient(train::GradientOp op, Value seed) {
  SmallVector<Operation *> before;
  for (Operation &each : *op->getBlock()) {
    if (&each == op)
      break;
    before.push_back(&each);
  }
  OpBuilder builder(op);
  llvm::DenseMap<Value, Value> found;
  ReverseMode reverse(before, op.getXs(), op.getZs());
  if (failed(reverse.run(builder, op.getY(), seed, [&](Value leaf, Value gradient) { found[leaf] = gradient; })))
    return failure();
  for (auto [x, result] : llvm::zip(op.getXs(), op.getResults())) {
    Value gradient = found.lookup(x);
    result.replaceAllUsesWith(gradient ? gradient : filled(builder, op.getLoc(), x.getType(), 0));
  }
  op.erase();
  return success();
}

Value ds::filled(OpBuilder &builder, Location location, Type type, double value) {
  auto tensor = cast<RankedTensorType>(type);
  auto elements = DenseElementsAttr::get(tensor, builder.getFloatAttr(tensor.getElementType(), value));
  return train::ConstantOp::create(builder, location, tensor, elements);
}

namespace {

struct ExpandGradients : ds::impl::ExpandGradientsBase<ExpandGradients> {
  void runOnOperation() override {
    SmallVector<train::GradientOp> gradients;
    getOperation().walk([&](train::GradientOp op) { gradients.push_back(op); });
    for (train::GradientOp op : gradients) {
      OpBuilder builder(op);
      Value one = filled(builder, op.getLoc(), op.getY().getType(), 1);
      if (failed(expandGradient(op, one)))
        return signalPassFailure();
    }
  }
};

} // namespace
