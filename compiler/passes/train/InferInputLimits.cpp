//===- InferInputLimits.cpp - which values an integer input may hold --------===//
//
// For each integer argument of @microbatch, a walk along its uses, through ops that only move elements. Every
// lookup and every label narrows the limit to the size of its table; gradients of both do not count; any other
// reader ends the walk, and nothing is said. PyTorch asserts the same bounds inside its kernels; here a batch is
// checked before the step.
//
//===----------------------------------------------------------------------===//
#include "compiler/analysis/TrainStep.h"
#include "compiler/passes/train/Passes.h"
#include "dialects/Train/Train.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace ds {
#define GEN_PASS_DEF_INFERINPUTLIMITS
#include "compiler/passes/train/Passes.h.inc"
} // namespace ds

using namespace mlir;
using namespace ds;

namespace {

/// Values in [0, below) and, where there is one, the label that is ignored.
struct Limit {
  std::optional<int64_t> below, ignored;
};

struct InferInputLimits : ds::impl::InferInputLimitsBase<InferInputLimits> {
  void runOnOperation() override {
    auto microbatch = getOperation().lookupSymbol<func::FuncOp>("microbatch");
    if (!microbatch)
      return;
    Builder builder(&getContext());
    for (BlockArgument argument : microbatch.getArguments()) {
      if (!getElementTypeOrSelf(argument.getType()).isInteger(64) &&
          !getElementTypeOrSelf(argument.getType()).isInteger(32))
        continue;
      Limit limit;
      if (!follow(argument, limit) || !limit.below)
        continue;
      microbatch.setArgAttr(argument.getArgNumber(), limitAttribute, builder.getI64IntegerAttr(*limit.below));
      if (limit.ignored)
        microbatch.setArgAttr(argument.getArgNumber(), ignoredAttribute, builder.getI64IntegerAttr(*limit.ignored));
    }
  }

  /// Narrows `limit` by every reader of `value` or of what only moves it; false where another op reads it.
  static bool follow(Value value, Limit &limit) {
    SmallVector<Value> moved = {value};
    while (!moved.empty())
      if (!followUses(moved.pop_back_val(), limit, moved))
        return false;
    return true;
  }

  static bool followUses(Value value, Limit &limit, SmallVectorImpl<Value> &moved) {
    for (OpOperand &use : value.getUses()) {
      Operation *user = use.getOwner();
      if (isa<train::ReshapeOp, train::TransposeOp, train::SliceOp, train::PadOp, train::BroadcastOp>(user)) {
        moved.push_back(user->getResult(0));
      } else if (auto gather = dyn_cast<train::GatherOp>(user); gather && use.getOperandNumber() == 1) {
        narrow(limit, cast<RankedTensorType>(gather.getData().getType()).getDimSize(gather.getAxis()));
      } else if (auto gather = dyn_cast<train::GatherElementsOp>(user); gather && use.getOperandNumber() == 1) {
        narrow(limit, cast<RankedTensorType>(gather.getData().getType()).getDimSize(gather.getAxis()));
      } else if (auto loss = dyn_cast<train::CrossEntropyOp>(user); loss && use.getOperandNumber() == 1) {
        const int64_t columns = cast<RankedTensorType>(loss.getLogits().getType()).getDimSize(1);
        narrow(limit, int64_t(loss.getClasses().value_or(uint64_t(columns))));
        limit.ignored = static_cast<int64_t>(loss.getIgnoreIndex());
      } else if (!isa<train::CrossEntropyGradOp, train::GatherGradOp, train::EqualOp>(user)) {
        return false;
      }
    }
    return true;
  }

  static void narrow(Limit &limit, int64_t below) { limit.below = std::min(limit.below.value_or(below), below); }
};

} // namespace
