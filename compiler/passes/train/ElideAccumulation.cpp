//===- ElideAccumulation.cpp - store where a step has one contribution ------===//
//
// Counts the accumulations into each variable by all functions of a step. Where there is one, and its function
// mentions the variable nowhere else, it becomes a store; @evaluate, which is run apart, counts for itself. The
// effect is that of PyTorch's zero_grad(set_to_none=True): the first gradient is taken, not added to zeros.
//
//===----------------------------------------------------------------------===//
#include "compiler/passes/train/Passes.h"
#include "dialects/Train/Train.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace ds {
#define GEN_PASS_DEF_ELIDEACCUMULATION
#include "compiler/passes/train/Passes.h.inc"
} // namespace ds

using namespace mlir;
using namespace ds;

namespace {

/// Must be run only where @microbatch is called once a step (and, as always, @evaluate once a run).
struct ElideAccumulation : ds::impl::ElideAccumulationBase<ElideAccumulation> {
  void runOnOperation() override {
    llvm::DenseMap<Attribute, unsigned> inStep; // accumulations by the functions of one step
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (function.getSymName() != "evaluate")
        for (auto op : function.getOps<train::AccumulateOp>())
          ++inStep[op.getVariableAttr()];
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      llvm::DenseMap<Attribute, unsigned> mentions; // by any op of the function: reads see the sum so far
      for (Operation &op : function.getOps())
        for (NamedAttribute attribute : op.getAttrDictionary())
          ++mentions[attribute.getValue()];
      for (auto op : llvm::make_early_inc_range(function.getOps<train::AccumulateOp>())) {
        const bool alone = function.getSymName() == "evaluate" || inStep.lookup(op.getVariableAttr()) == 1;
        if (!alone || mentions.lookup(op.getVariableAttr()) != 1)
          continue;
        OpBuilder builder(op);
        train::StoreOp::create(builder, op.getLoc(), op.getVariableAttr(), op.getValue());
        op.erase();
      }
    }
  }
};

} // namespace
