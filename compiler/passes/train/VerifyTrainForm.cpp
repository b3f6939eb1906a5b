//===- VerifyTrainForm.cpp - check that a training step is complete ---------===//
//
// Checks, in this order: the three functions exist; @update takes nothing; @microbatch and @evaluate take the same;
// functions are straight-line code of train ops; every gradient is written by @microbatch, and no parameter has
// two.
//
//===----------------------------------------------------------------------===//
#include "compiler/analysis/TrainStep.h"
#include "compiler/passes/train/Passes.h"
#include "compiler/passes/train/StepFunctions.h"
#include "dialects/Train/Train.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include "llvm/ADT/StringSet.h"

namespace ds {
#define GEN_PASS_DEF_VERIFYTRAINFORM
#include "compiler/passes/train/Passes.h.inc"
} // namespace ds

using namespace mlir;
using namespace ds;

namespace {

struct VerifyTrainForm : ds::impl::VerifyTrainFormBase<VerifyTrainForm> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    SymbolTable symbols(module);
    for (StringRef name : {"microbatch", "update", "evaluate"})
      if (!symbols.lookup<func::FuncOp>(name)) {
        module.emitError() << "has no @" << name << "; ds-differentiate and ds-insert-optimizer make it";
        return signalPassFailure();
      }
    if (auto update = symbols.lookup<func::FuncOp>("update"); update.getNumArguments() != 0) {
      update.emitError() << "takes " << update.getArgumentTypes() << "; it works on variables only";
      return signalPassFailure();
    }
    auto microbatch = symbols.lookup<func::FuncOp>("microbatch"), evaluate = symbols.lookup<func::FuncOp>("evaluate");
    if (microbatch.getArgumentTypes() != evaluate.getArgumentTypes()) {
      evaluate.emitError() << "takes " << evaluate.getArgumentTypes() << ", @microbatch "
                           << microbatch.getArgumentTypes();
      return signalPassFailure();
    }
    if (failed(verifyStraightLine(module)) || failed(verifyGradients(module, microbatch)))
      signalPassFailure();
  }

  /// Every accumulator is written by @microbatch, and no parameter has two.
  static LogicalResult verifyGradients(ModuleOp module, func::FuncOp microbatch) {
    llvm::StringSet<> written;
    for (auto op : microbatch.getOps<train::AccumulateOp>())
      written.insert(op.getVariable());
    for (auto op : microbatch.getOps<train::StoreOp>())
      written.insert(op.getVariable());
    for (auto variable : module.getOps<train::VariableOp>())
      if (variable.getKind() == train::VariableKind::Gradient && !written.contains(variable.getSymName()))
        return variable.emitOpError("is a gradient that @microbatch never writes");
    llvm::DenseMap<StringAttr, train::VariableOp> gradients; // by parameter; looked up
    for (auto variable : module.getOps<train::VariableOp>())
      if (variable.getKind() == train::VariableKind::Gradient && variable.getOf())
        if (auto [other, isFirst] = gradients.try_emplace(variable.getOfAttr().getAttr(), variable); !isFirst) {
          InFlightDiagnostic error = variable.emitOpError() << "is the second gradient of " << variable.getOfAttr();
          error.attachNote(other->second.getLoc()) << "the first";
          return error;
        }
    return success();
  }
};

} // namespace
