//===- FuseResidualGradients.cpp - a residual's gradient with a norm's ----===//
//
// A block y = x + f(norm(x)) adds the gradient that arrives at y to the norm's. Where only that sum reads the norm's
// gradient, and the other was there before, train.layer_norm_grad or rms_norm_grad adds it as it writes.
//
//===----------------------------------------------------------------------===//
#include "compiler/passes/fusion/IsThereAt.h"
#include "compiler/passes/fusion/Passes.h"
#include "dialects/Train/Train.h"

namespace ds {
#define GEN_PASS_DEF_FUSERESIDUALGRADIENTS
#include "compiler/passes/fusion/Passes.h.inc"
} // namespace ds

using namespace mlir;
using namespace ds;

namespace {

struct FuseResidualGradients : ds::impl::FuseResidualGradientsBase<FuseResidualGradients> {
  void runOnOperation() override {
    SmallVector<Operation *> norms;
    getOperation().walk([&](Operation *op) {
      if (isa<train::LayerNormGradOp, train::RmsNormGradOp>(op))
        norms.push_back(op);
    });
    for (Operation *op : norms) {
      if (auto norm = dyn_cast<train::LayerNormGradOp>(op))
        fuse(norm);
      else
        fuse(cast<train::RmsNormGradOp>(op));
    }
  }

private:
  template <typename NormGradOp> static void fuse(NormGradOp norm) {
    Value gradient = norm.getInputGradient();
    if (norm.getResidual() || !gradient.hasOneUse())
      return;
    auto sum = dyn_cast<train::AddOp>(*gradient.user_begin());
    if (!sum || sum->getBlock() != norm->getBlock())
      return;
    Value residual = sum.getLhs() == gradient ? sum.getRhs() : sum.getLhs();
    if (residual.getType() != gradient.getType() || !isThereAt(residual, norm))
      return;
    norm.getResidualMutable().assign(residual);
    sum.replaceAllUsesWith(gradient);
    sum.erase();
  }
};

} // namespace
