//===- VerifySimpleForm.cpp - check that a model is ready to be differentiated ===//
//
// Checks, in this order: either @forward or the three functions of a step exist; no algorithm is left to be split;
// functions are straight-line code of train ops; no train.gradient is left. Verification at the boundary of a phase
// is IREE's habit (VerifyLowerings in its Stream dialect).
//
//===----------------------------------------------------------------------===//
#include "compiler/analysis/TrainStep.h"
#include "compiler/passes/train/Passes.h"
#include "compiler/passes/train/StepFunctions.h"

namespace ds {
#define GEN_PASS_DEF_VERIFYSIMPLEFORM
#include "compiler/passes/train/Passes.h.inc"
} // namespace ds

using namespace mlir;
using namespace ds;

namespace {

struct VerifySimpleForm : ds::impl::VerifySimpleFormBase<VerifySimpleForm> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    const SymbolTable symbols(module);
    const bool step = llvm::all_of(ArrayRef<StringRef>{"microbatch", "update", "evaluate"},
                                   [&](StringRef name) { return bool(symbols.lookup<func::FuncOp>(name)); });
    auto forward = symbols.lookup<func::FuncOp>("forward");
    if (bool(forward) == step) {
      module.emitError() << "has " << (step ? "both" : "neither") << " @forward " << (step ? "and" : "nor")
                         << " @microbatch, @update and @evaluate; import makes the first, and ds-split-algorithm of it "
                            "the others where the model brings its own algorithm";
      return signalPassFailure();
    }
    if (forward && forward->hasAttr(algorithmAttribute)) {
      forward.emitError("holds a training algorithm; ds-split-algorithm should have split it");
      return signalPassFailure();
    }
    if (failed(verifyStraightLine(module)))
      return signalPassFailure();
    module.walk([&](train::GradientOp op) {
      op.emitOpError("is left over; ds-expand-gradients should have replaced it");
      signalPassFailure();
    });
  }
};

} // namespace
