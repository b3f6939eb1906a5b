//===- StepFunctions.cpp - what the passes that make a training step share --===//
//
// The steps in which ds-differentiate, ds-split-algorithm and ds-insert-optimizer agree: which function is a
// model's forward pass, how its loss becomes a metric, what evaluation is, and how gradients are normed. The norm
// adds the sums of squares of fixed blocks in a fixed order, so it has the same bits however many ranks share the
// blocks.
//
//===----------------------------------------------------------------------===//
#include "compiler/passes/train/StepFunctions.h"

#include "compiler/analysis/TrainStep.h"
#include "compiler/passes/train/EvaluationForm.h"
#include "dialects/Train/StopGradient.h"

using namespace mlir;
using namespace ds;

/// What ds-count-targets has made.
static bool isCountOfTargets(Operation *op) {
  auto variable = dyn_cast<train::VariableOp>(op);
  return variable && variable.getKind() == train::VariableKind::Metric && variable.getSymName() == targetsMetric;
}

func::FuncOp ds::findForward(SymbolTable &symbols) {
  Operation *module = symbols.getOp();
  auto forward = symbols.lookup<func::FuncOp>("forward");
  if (!forward || !forward.getBody().hasOneBlock() || forward.getFunctionType().getNumResults() != 1) {
    module->emitError("needs a function @forward of one block that returns the loss");
    return {};
  }
  auto loss = dyn_cast<RankedTensorType>(forward.getFunctionType().getResult(0));
  if (!loss || loss.getRank() != 0 || !isa<FloatType>(loss.getElementType())) {
    forward.emitError() << "returns " << forward.getFunctionType().getResult(0)
                        << "; the loss must be a scalar of f32 or f64";
    return {};
  }
  for (StringRef name : reservedNames)
    if (Operation *taken = symbols.lookup(name); taken && taken != forward && !isCountOfTargets(taken)) {
      taken->emitError() << "@" << name << " has a name that the training step needs for itself; rename it";
      return {};
    }
  return forward;
}

void ds::makeLossMetric(func::FuncOp forward, SymbolTable &symbols) {
  OpBuilder builder(forward);
  auto type = cast<RankedTensorType>(forward.getFunctionType().getResult(0));
  symbols.insert(train::VariableOp::create(builder, forward.getLoc(), train::VariableKind::Metric, lossMetric, type));
}

void ds::accumulateLoss(func::FuncOp function) {
  auto ret = cast<func::ReturnOp>(function.getBody().front().getTerminator());
  OpBuilder builder(ret);
  train::AccumulateOp::create(builder, ret.getOperand(0).getLoc(),
                              FlatSymbolRefAttr::get(builder.getContext(), lossMetric), ret.getOperand(0));
  ret.erase();
  function.removeResAttrsAttr();
  function.setType(builder.getFunctionType(function.getArgumentTypes(), {}));
}

void ds::eraseDead(func::FuncOp function) {
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(function.getBody().front())))
    if (isOpTriviallyDead(&op))
      op.erase();
}

/// An evaluation stores nothing. Where the module's own changes no buffer it computes with what is there.
static void leaveOutStore(train::StoreOp store) {
  Value made = store.getValue();
  if (store->hasAttr(train::keptInEvaluation) && made.getDefiningOp()) {
    OpBuilder builder(made.getDefiningOp());
    Value old = train::ReadOp::create(builder, store.getLoc(), made.getType(), store.getVariableAttr());
    made.replaceUsesWithIf(old, [&](OpOperand &use) { return use.getOwner() != store; });
  }
  store.erase();
}

void ds::makeEvaluate(func::FuncOp forward, SymbolTable &symbols) {
  auto evaluate = cast<func::FuncOp>(forward->clone());
  evaluate.setName("evaluate");
  symbols.insert(evaluate);
  for (auto store : llvm::make_early_inc_range(evaluate.getOps<train::StoreOp>()))
    leaveOutStore(store);
  makeEvaluationForm(evaluate);
  eraseDead(evaluate);
  accumulateLoss(evaluate);
  OpBuilder builder = OpBuilder::atBlockEnd(&evaluate.getBody().front());
  func::ReturnOp::create(builder, evaluate.getLoc());
}

void ds::setName(ImplicitLocOpBuilder &builder, StringRef name) {
  builder.setLoc(NameLoc::get(builder.getStringAttr(name)));
}

Value ds::buildGradientNorm(ImplicitLocOpBuilder &builder, ArrayRef<train::VariableOp> gradients) {
  SmallVector<Value> partials;
  for (train::VariableOp gradient : gradients) {
    builder.setLoc(gradient.getLoc());
    Value value =
        train::ReadOp::create(builder, gradient.getTensorType(), FlatSymbolRefAttr::get(gradient.getSymNameAttr()));
    partials.push_back(train::BlockSumSquaresOp::create(builder, value));
  }
  setName(builder, gradientNormMetric);
  return train::GlobalNormOp::create(builder, partials, ArrayRef<int64_t>());
}

void ds::storeMetric(ImplicitLocOpBuilder &builder, SymbolTable &symbols, StringRef name, Value value) {
  auto type = cast<RankedTensorType>(value.getType());
  setName(builder, name);
  {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPoint(builder.getInsertionBlock()->getParentOp());
    symbols.insert(train::VariableOp::create(builder, train::VariableKind::Metric, name, type));
  }
  train::StoreOp::create(builder, FlatSymbolRefAttr::get(builder.getContext(), name), value);
}

LogicalResult ds::verifyStraightLine(ModuleOp module) {
  for (auto function : module.getOps<func::FuncOp>())
    if (!function.getBody().hasOneBlock())
      return function.emitError("must have one block: a training step is straight-line code");
  WalkResult result = module.walk([](Operation *op) {
    if (isa<ModuleOp, func::FuncOp, func::ReturnOp>(op) || isa<train::TrainDialect>(op->getDialect()))
      return WalkResult::advance();
    op->emitOpError("is not allowed in a training step, which holds train ops only");
    return WalkResult::interrupt();
  });
  return failure(result.wasInterrupted());
}
