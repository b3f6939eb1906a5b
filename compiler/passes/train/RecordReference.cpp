//===- RecordReference.cpp - keep the single-device program -----------------===//
//
// Numbers the ops of all functions in program order (attribute train.reference), then clones the functions into
// @reference. Passes hand the numbers on to what they make of an op. What is lowered can then be compared with what
// was meant, op by op: translation validation (Pnueli et al., TACAS 1998) is the idea.
//
//===----------------------------------------------------------------------===//
#include "compiler/analysis/TrainStep.h"
#include "compiler/passes/train/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace ds {
#define GEN_PASS_DEF_RECORDREFERENCE
#include "compiler/passes/train/Passes.h.inc"
} // namespace ds

using namespace mlir;
using namespace ds;

namespace {

struct RecordReference : ds::impl::RecordReferenceBase<RecordReference> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    if (SymbolTable::lookupSymbolIn(module, referenceModule)) {
      module.emitError() << "has a module @" << referenceModule << " already; it is recorded once";
      return signalPassFailure();
    }
    OpBuilder builder = OpBuilder::atBlockEnd(module.getBody());
    SmallVector<func::FuncOp> functions(module.getOps<func::FuncOp>());
    for (func::FuncOp function : functions)
      if (!function.getBody().hasOneBlock()) {
        function.emitError("must have one block; see ds-verify-train-form");
        return signalPassFailure();
      }
    int64_t number = 0;
    for (func::FuncOp function : functions)
      for (Operation &op : function.getBody().front().without_terminator())
        op.setAttr(referenceAttribute, builder.getDenseI64ArrayAttr({number++}));
    auto reference = ModuleOp::create(builder, module.getLoc(), referenceModule);
    builder.setInsertionPointToStart(reference.getBody());
    for (func::FuncOp function : functions)
      builder.clone(*function);
  }
};

} // namespace
