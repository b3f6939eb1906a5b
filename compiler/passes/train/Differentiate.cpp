//===- Differentiate.cpp - add the backward pass, split off evaluation ------===//
//
//   1. One read a variable, so that a tied weight has one gradient.
//   2. A copy of @forward becomes @evaluate (EvaluationForm.h).
//   3. @forward becomes @microbatch: the loss goes into its metric, and reverse mode (ReverseMode.cpp) starts from
//      train.loss_gradient at each parameter that may be trained.
//   4. The gradient of a parameter, once complete, is added to a variable of kind gradient, as PyTorch adds to
//      `.grad`.
// The whole backward is in the program before the first step; PyTorch's autograd records it anew in each.
//
//===----------------------------------------------------------------------===//
#include "compiler/analysis/TrainStep.h"
#include "compiler/passes/train/EvaluationForm.h"
#include "compiler/passes/train/Passes.h"
#include "compiler/passes/train/ReverseMode.h"
#include "compiler/passes/train/StepFunctions.h"
#include "dialects/Train/StopGradient.h"
#include "dialects/Train/Train.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include "llvm/ADT/MapVector.h"

namespace ds {
#define GEN_PASS_DEF_DIFFERENTIATE
#include "compiler/passes/train/Passes.h.inc"
} // namespace ds

using namespace mlir;
using namespace ds;

namespace {

struct Differentiate : ds::impl::DifferentiateBase<Differentiate> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    SymbolTable symbols(module);
    func::FuncOp forward = findForward(symbols);
    if (!forward)
      return signalPassFailure();
    mergeReads(forward);
    makeLossMetric(forward, symbols);
    makeEvaluate(forward, symbols);
    if (makeTrainingForm(forward))
      eraseDead(forward);
    if (failed(makeMicrobatch(forward, symbols)))
      return signalPassFailure();
    dropStopGradients(module);
    module.walk([](train::StoreOp store) { store->removeAttr(train::keptInEvaluation); });    // @evaluate is made
    module.walk([](train::GatherOp gather) { gather->removeAttr(train::paddingAttribute); }); // gradients have it
  }

  /// One read per variable, at the first: a tied weight has one gradient.
  static void mergeReads(func::FuncOp function) {
    llvm::MapVector<StringAttr, train::ReadOp> first;
    for (auto read : llvm::make_early_inc_range(function.getOps<train::ReadOp>())) {
      auto [it, inserted] = first.try_emplace(read.getVariableAttr().getAttr(), read);
      if (inserted)
        continue;
      read.replaceAllUsesWith(it->second.getResult());
      read.erase();
    }
  }

  static LogicalResult makeMicrobatch(func::FuncOp forward, SymbolTable &symbols) {
    Block &body = forward.getBody().front();
    Value loss = body.getTerminator()->getOperand(0);
    Location location = loss.getLoc();
    accumulateLoss(forward);
    (void)symbols.rename(forward, "microbatch"); // findForward() has seen that the name is free
    SmallVector<Operation *> operations;
    SmallVector<Value> trained;
    for (Operation &op : body) {
      operations.push_back(&op);
      if (auto read = dyn_cast<train::ReadOp>(op);
          read && symbols.lookup<train::VariableOp>(read.getVariable()).getTrainable())
        trained.push_back(read);
    }
    ReverseMode reverse(operations, trained);
    if (!reverse.isActive(loss))
      return forward.emitError("the loss depends on no trainable parameter; see --trainable and --frozen");
    OpBuilder builder = OpBuilder::atBlockEnd(&body);
    auto seed = train::LossGradientOp::create(builder, location, loss.getType(), llvm::APFloat(1.0));
    auto complete = [&](Value leaf, Value gradient) {
      accumulate(builder, symbols, cast<train::ReadOp>(leaf.getDefiningOp()), gradient);
    };
    if (failed(reverse.run(builder, loss, seed, complete)))
      return failure();
    func::ReturnOp::create(builder, forward.getLoc());
    return success();
  }

  /// The gradient of a parameter is complete: into its accumulator, once.
  static void accumulate(OpBuilder &builder, SymbolTable &symbols, train::ReadOp read, Value gradient) {
    auto parameter = symbols.lookup<train::VariableOp>(read.getVariable());
    OpBuilder atParameter(parameter->getContext());
    atParameter.setInsertionPointAfter(parameter);
    auto variable = train::VariableOp::create(atParameter, parameter.getLoc(), train::VariableKind::Gradient,
                                              gradientName(parameter.getSymName()), parameter.getTensorType(),
                                              Attribute(), FlatSymbolRefAttr::get(parameter.getSymNameAttr()));
    symbols.insert(variable);
    train::AccumulateOp::create(builder, read.getLoc(), FlatSymbolRefAttr::get(variable.getSymNameAttr()), gradient);
  }
};

} // namespace
