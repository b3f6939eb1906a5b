//===- ScaleGradients.cpp - every scale of the gradient in one op ----------===//
//
// Sets the scale of the one train.loss_gradient to 1 / microbatches. The chain rule is linear, so the scale reaches
// every gradient; the sum over micro-batches and ranks is then a mean. DeepSpeed divides the loss by
// gradient_accumulation_steps, and gradients by the ranks; here it is one factor.
//
//===----------------------------------------------------------------------===//
#include "compiler/passes/train/Passes.h"
#include "dialects/Train/Train.h"

namespace ds {
#define GEN_PASS_DEF_SCALEGRADIENTS
#include "compiler/passes/train/Passes.h.inc"
} // namespace ds

using namespace mlir;
using namespace ds;

namespace {

struct ScaleGradients : ds::impl::ScaleGradientsBase<ScaleGradients> {
  using ScaleGradientsBase::ScaleGradientsBase;

  void runOnOperation() override {
    SmallVector<train::LossGradientOp> seeds;
    getOperation().walk([&](train::LossGradientOp op) { seeds.push_back(op); });
    if (seeds.size() != 1 || microbatches < 1) {
      getOperation().emitError() << "needs one train.loss_gradient and microbatches >= 1; there are " << seeds.size()
                                 << ", microbatches is " << microbatches.getValue();
      return signalPassFailure();
    }
    if (!seeds.front().getScale().isExactlyValue(1.0)) {
      seeds.front().emitOpError("is scaled already; every scale is applied once");
      return signalPassFailure();
    }
    seeds.front().setScale(APFloat(1.0 / double(microbatches)));
  }
};

} // namespace
