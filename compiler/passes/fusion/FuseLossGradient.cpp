//===- FuseLossGradient.cpp - a loss and its gradient of one reading ---------===//
//
// Where train.cross_entropy_grad reads the logits of a train.cross_entropy and the log sums that it alone needs, one op
// stands for both, in the backward pass at the gradient's place. What is computed of the loss ahead of that, up to the
// metric that it is added to, moves behind it. Not where the gradient itself depends on the loss.
//
//===----------------------------------------------------------------------===//
#include "compiler/analysis/Stages.h"
#include "compiler/analysis/TrainStep.h"
#include "compiler/passes/fusion/Passes.h"
#include "dialects/Train/Train.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include "llvm/ADT/SetVector.h"

namespace ds {
#define GEN_PASS_DEF_FUSELOSSGRADIENT
#include "compiler/passes/fusion/Passes.h.inc"
} // namespace ds

using namespace mlir;
using namespace ds;

namespace {

bool uses(Operation &op, StringAttr variable) {
  if (auto read = dyn_cast<train::ReadOp>(op))
    return read.getVariableAttr().getAttr() == variable;
  return llvm::is_contained(train::writtenVariables(&op), variable);
}

/// Whether `op` may run later in its block, as far as variables go: nothing else there uses one that it writes.
bool mayWait(Operation *op) {
  if (isMemoryEffectFree(op))
    return true;
  return isa<train::AccumulateOp, train::StoreOp>(op) &&
         llvm::all_of(train::writtenVariables(op), [&](StringAttr variable) {
           return llvm::count_if(*op->getBlock(), [&](Operation &other) { return uses(other, variable); }) == 1;
         });
}

/// What is computed of `value` ahead of `place`, in program order; nothing where `place` needs some of it, or it cannot
/// wait for `place`.
std::optional<SmallVector<Operation *>> followersAhead(Value value, Operation *place) {
  llvm::SetVector<Operation *> found;
  SmallVector<Operation *> open(value.getUsers());
  while (!open.empty()) {
    Operation *op = open.pop_back_val();
    if (op == place || op->getBlock() != place->getBlock())
      return std::nullopt;
    if (place->isBeforeInBlock(op) || !found.insert(op))
      continue;
    if (!mayWait(op) || stageOf(op) != stageOf(place))
      return std::nullopt;
    llvm::append_range(open, op->getUsers());
  }
  SmallVector<Operation *> ahead = found.takeVector();
  llvm::sort(ahead, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
  return ahead;
}

struct FuseLossGradient : ds::impl::FuseLossGradientBase<FuseLossGradient> {
  void runOnOperation() override {
    for (auto function : getOperation().getOps<func::FuncOp>())
      for (Block &block : function.getBody())
        for (auto gradient : llvm::make_early_inc_range(block.getOps<train::CrossEntropyGradOp>()))
          fuse(gradient);
  }

private:
  static void fuse(train::CrossEntropyGradOp gradient) {
    auto loss = gradient.getLse().getDefiningOp<train::CrossEntropyOp>();
    if (!loss || !loss.getLse().hasOneUse() || loss->getBlock() != gradient->getBlock() || !isOf(gradient, loss))
      return;
    const auto followers = followersAhead(loss.getLoss(), gradient);
    if (!followers)
      return;
    OpBuilder builder(gradient);
    auto both = train::CrossEntropyWithGradOp::create(
        builder, gradient.getLoc(), gradient.getLogits(), gradient.getLabels(), gradient.getGradient(),
        gradient.getIgnoreIndexAttr(), gradient.getReductionAttr(), gradient.getClassesAttr());
    if (Attribute stage = gradient->getAttr(pipelineStageAttribute))
      both->setAttr(pipelineStageAttribute, stage);
    SmallVector<int64_t> reference;
    for (Operation *op : {loss.getOperation(), gradient.getOperation()})
      if (auto numbers = op->getAttrOfType<DenseI64ArrayAttr>(referenceAttribute))
        llvm::append_range(reference, numbers.asArrayRef());
    if (!reference.empty())
      both->setAttr(referenceAttribute, builder.getDenseI64ArrayAttr(reference));
    loss.getLoss().replaceAllUsesWith(both.getLoss());
    gradient.replaceAllUsesWith(both.getResult());
    Operation *last = both;
    for (Operation *op : *followers) {
      op->moveAfter(last);
      last = op;
    }
    gradient.erase();
    loss.erase();
  }

  static bool isOf(train::CrossEntropyGradOp gradient, train::CrossEntropyOp loss) {
    return gradient.getLogits() == loss.getLogits() && gradient.getLabels() == loss.getLabels() &&
           gradient.getIgnoreIndexAttr() == loss.getIgnoreIndexAttr() &&
           gradient.getReductionAttr() == loss.getReductionAttr() &&
           gradient.getClassesAttr() == loss.getClassesAttr() && stageOf(gradient) == stageOf(loss);
  }
};

} // namespace
