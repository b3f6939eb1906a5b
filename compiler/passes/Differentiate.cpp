//===- Differentiate.cpp - add the backward pass, split off evaluation ------===//
//
// Reverse-mode differentiation of a straight-line program (Griewank and Walther, "Evaluating derivatives", chapter 3).
// Activity (which values depend on a trainable parameter) prunes gradients nobody needs.
//
//===----------------------------------------------------------------------===//
#include "compiler/passes/Passes.h"
#include "compiler/passes/TrainStep.h"
#include "dialects/Train/Train.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include "llvm/ADT/MapVector.h"

namespace ds {
#define GEN_PASS_DEF_DIFFERENTIATE
#include "compiler/passes/Passes.h.inc"
} // namespace ds

using namespace mlir;
using namespace ds;

namespace {

/// Builds the backward pass of one block behind its last op.
class ReverseMode {
public:
  ReverseMode(Block &block, SymbolTable &symbols) : symbols_(symbols), builder_(block.getParentOp()->getContext()) {
    for (Operation &op : block)
      operations_.push_back(&op);
    builder_.setInsertionPointToEnd(&block);
    markActive();
  }

  bool isActive(Value value) const { return active_.contains(value); }

  /// Appends the ops that carry `seed`, the gradient of `value`, back to every trainable variable that is read.
  LogicalResult run(Value value, Value seed) {
    gradients_[value] = seed;
    for (Operation *op : llvm::reverse(operations_))
      if (failed(visit(op)))
        return failure();
    return success();
  }

private:
  /// A value is active if a trainable variable reaches it.
  void markActive() {
    for (Operation *op : operations_) {
      bool active = llvm::any_of(op->getOperands(), [&](Value v) { return isActive(v); });
      if (auto read = dyn_cast<train::ReadOp>(op))
        active = symbols_.lookup<train::VariableOp>(read.getVariable()).getTrainable();
      for (Value result : op->getResults())
        if (active && isa<FloatType>(getElementTypeOrSelf(result.getType())))
          active_.insert(result);
    }
  }

  LogicalResult visit(Operation *op) {
    SmallVector<Value> resultGradients;
    for (Value result : op->getResults())
      resultGradients.push_back(gradients_.lookup(result));
    if (llvm::none_of(resultGradients, [](Value v) { return bool(v); }))
      return success();
    if (auto read = dyn_cast<train::ReadOp>(op)) {
      accumulate(read, resultGradients[0]);
      return success();
    }
    BitVector needed(op->getNumOperands());
    for (auto [index, operand] : llvm::enumerate(op->getOperands()))
      needed[index] = isActive(operand);
    if (needed.none())
      return success();
    auto differentiable = dyn_cast<train::DifferentiableOpInterface>(op);
    if (!differentiable)
      return op->emitOpError(
          "has no gradient, and a trainable parameter depends on it; freeze the parameters above it");
    SmallVector<Value> operandGradients(op->getNumOperands());
    if (failed(differentiable.buildGradient(builder_, resultGradients, needed, operandGradients)))
      return failure();
    for (auto [operand, gradient] : llvm::zip(op->getOperands(), operandGradients))
      if (gradient)
        contribute(operand, gradient);
    return success();
  }

  void contribute(Value value, Value gradient) {
    Value &sum = gradients_[value];
    sum = sum ? train::AddOp::create(builder_, value.getLoc(), sum, gradient).getResult() : gradient;
  }

  /// The gradient of a parameter is complete: several reads of one variable add up, then accumulate once.
  void accumulate(train::ReadOp read, Value gradient) {
    auto parameter = symbols_.lookup<train::VariableOp>(read.getVariable());
    const std::string name = gradientName(parameter.getSymName());
    if (!symbols_.lookup(name)) {
      OpBuilder::InsertionGuard guard(builder_);
      builder_.setInsertionPointAfter(parameter);
      auto variable = train::VariableOp::create(builder_, parameter.getLoc(), train::VariableKind::Gradient, name,
                                                parameter.getTensorType());
      symbols_.insert(variable);
    }
    train::AccumulateOp::create(builder_, read.getLoc(), FlatSymbolRefAttr::get(builder_.getContext(), name), gradient);
  }

  SymbolTable &symbols_;
  OpBuilder builder_;
  SmallVector<Operation *> operations_; // of the forward pass, in program order
  llvm::DenseSet<Value> active_;        // looked up, never iterated
  llvm::DenseMap<Value, Value> gradients_;
};

struct Differentiate : ds::impl::DifferentiateBase<Differentiate> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    SymbolTable symbols(module);
    auto forward = symbols.lookup<func::FuncOp>("forward");
    if (!forward || !forward.getBody().hasOneBlock() || forward.getFunctionType().getNumResults() != 1) {
      module.emitError("needs a function @forward of one block that returns the loss");
      return signalPassFailure();
    }
    auto loss = dyn_cast<RankedTensorType>(forward.getFunctionType().getResult(0));
    if (!loss || loss.getRank() != 0 || !isa<FloatType>(loss.getElementType())) {
      forward.emitError() << "returns " << forward.getFunctionType().getResult(0)
                          << "; the loss must be a scalar of f32 or f64";
      return signalPassFailure();
    }
    for (StringRef name : reservedNames)
      if (Operation *taken = symbols.lookup(name); taken && taken != forward) {
        taken->emitError() << "@" << name << " has a name that the training step needs for itself; rename it";
        return signalPassFailure();
      }
    mergeReads(forward);
    makeLossMetric(forward, symbols);
    makeEvaluate(forward, symbols);
    if (failed(makeMicrobatch(forward, symbols)))
      return signalPassFailure();
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

  static void makeLossMetric(func::FuncOp forward, SymbolTable &symbols) {
    OpBuilder builder(forward);
    auto type = cast<RankedTensorType>(forward.getFunctionType().getResult(0));
    symbols.insert(train::VariableOp::create(builder, forward.getLoc(), train::VariableKind::Metric, lossMetric, type));
  }

  /// Replaces the return of the loss by adding it into its metric.
  static void accumulateLoss(func::FuncOp function) {
    auto ret = cast<func::ReturnOp>(function.getBody().front().getTerminator());
    OpBuilder builder(ret);
    train::AccumulateOp::create(builder, ret.getOperand(0).getLoc(),
                                FlatSymbolRefAttr::get(builder.getContext(), lossMetric), ret.getOperand(0));
    ret.erase();
    function.removeResAttrsAttr();
    function.setType(builder.getFunctionType(function.getArgumentTypes(), {}));
  }

  static void makeEvaluate(func::FuncOp forward, SymbolTable &symbols) {
    auto evaluate = cast<func::FuncOp>(forward->clone());
    evaluate.setName("evaluate");
    symbols.insert(evaluate);
    for (auto dropout : llvm::make_early_inc_range(evaluate.getOps<train::DropoutOp>())) {
      dropout.replaceAllUsesWith(dropout.getInput());
      dropout.erase();
    }
    accumulateLoss(evaluate);
    OpBuilder builder = OpBuilder::atBlockEnd(&evaluate.getBody().front());
    func::ReturnOp::create(builder, evaluate.getLoc());
  }

  static LogicalResult makeMicrobatch(func::FuncOp forward, SymbolTable &symbols) {
    Block &body = forward.getBody().front();
    Value loss = body.getTerminator()->getOperand(0);
    Location location = loss.getLoc();
    accumulateLoss(forward);
    symbols.rename(forward, "microbatch");
    ReverseMode reverse(body, symbols);
    if (!reverse.isActive(loss))
      return forward.emitError("the loss depends on no trainable parameter; see --trainable and --frozen");
    OpBuilder builder = OpBuilder::atBlockEnd(&body);
    auto seed = train::LossGradientOp::create(builder, location, loss.getType(), llvm::APFloat(1.0));
    if (failed(reverse.run(loss, seed)))
      return failure();
    builder.setInsertionPointToEnd(&body);
    func::ReturnOp::create(builder, forward.getLoc());
    return success();
  }
};

} // namespace
