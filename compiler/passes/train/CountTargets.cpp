//===- CountTargets.cpp - weigh the loss by the targets of the whole batch --===//
//
// A mean over each micro-batch, and then over these, weighs a target by how many stand beside it. Here the loss becomes
// a sum over targets, labels that are not ignored, and their number a metric beside it. Both, and the gradients, are
// added up over micro-batches and ranks as they are; ds-insert-optimizer divides once, when all are counted. This is
// `num_items_in_batch` of transformers' Trainer, without a second look at the data.
//
//===----------------------------------------------------------------------===//
#include "compiler/analysis/TrainStep.h"
#include "compiler/passes/train/Passes.h"
#include "compiler/passes/train/StepFunctions.h"
#include "dialects/Train/LocationName.h"
#include "dialects/Train/Train.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace ds {
#define GEN_PASS_DEF_COUNTTARGETS
#include "compiler/passes/train/Passes.h.inc"
} // namespace ds

using namespace mlir;
using namespace ds;

namespace {

struct CountTargets : ds::impl::CountTargetsBase<CountTargets> {
  void runOnOperation() override {
    SymbolTable symbols(getOperation());
    func::FuncOp forward = findForward(symbols);
    if (!forward)
      return signalPassFailure();
    auto loss = forward.getBody().front().getTerminator()->getOperand(0).getDefiningOp<train::CrossEntropyOp>();
    if (!loss || loss.getReduction() != train::Reduction::Mean || !loss.getLoss().hasOneUse()) {
      refuse(forward);
      return signalPassFailure();
    }
    loss.setReduction(train::Reduction::Sum);
    OpBuilder atForward(forward);
    auto targets = train::VariableOp::create(atForward, loss.getLoc(), train::VariableKind::Metric, targetsMetric,
                                             RankedTensorType::get({}, atForward.getF64Type()));
    symbols.insert(targets);
    ImplicitLocOpBuilder b(loss.getLoc(), forward.getBody().front().getTerminator());
    train::AccumulateOp::create(b, FlatSymbolRefAttr::get(targets.getSymNameAttr()), count(b, loss));
  }

private:
  static void refuse(func::FuncOp forward) {
    Value loss = forward.getBody().front().getTerminator()->getOperand(0);
    Operation *made = loss.getDefiningOp();
    const std::string name = made ? train::locationName(made->getLoc()) : "";
    forward.emitError() << "the model's loss" << (name.empty() ? "" : " (" + name + ")")
                        << " is not one mean cross entropy of labels, without weights and nothing added, which "
                           "deepstatic.loss_normalization \"tokens\" needs; leave it at \"microbatch\"";
  }

  /// How many labels are not ignored: exact in f32 within a micro-batch, in f64 as a sum over all.
  static Value count(ImplicitLocOpBuilder &b, train::CrossEntropyOp loss) {
    auto scalar = RankedTensorType::get({}, b.getI64Type());
    Value ignored = train::ConstantOp::create(
        b, scalar, DenseElementsAttr::get(scalar, b.getI64IntegerAttr(int64_t(loss.getIgnoreIndex()))));
    Value counts = train::NotOp::create(b, train::EqualOp::create(b, loss.getLabels(), ignored));
    Value ones = train::CastOp::create(b, counts, TypeAttr::get(b.getF32Type()));
    Value sum = train::ReduceSumOp::create(b, ones, ArrayRef<int64_t>{0});
    return train::CastOp::create(b, sum, TypeAttr::get(b.getF64Type()));
  }
};

} // namespace
