//===- SplitAlgorithm.cpp - a training step from the model's own algorithm --===//
//
//   1. Forward walk: an op is late if it reads a gradient or a late op, or is a store; it is of the micro-batch if
//      an input, chance or a gradient reaches it.
//   2. @evaluate is the forward pass without what only late ops read.
//   3. @update gets the late ops, in their order. A value they read is computed again if it is not of the
//      micro-batch; else a variable carries it over. All is read before the first store.
//   4. What remains is @microbatch; train.gradient is expanded there, from train.loss_gradient on.
// The algorithm is that of ONNX's TrainingInfoProto.
//
//===----------------------------------------------------------------------===//
#include "compiler/analysis/TrainStep.h"
#include "compiler/passes/train/ExpandGradients.h"
#include "compiler/passes/train/Passes.h"
#include "compiler/passes/train/ReverseMode.h"
#include "compiler/passes/train/StepFunctions.h"
#include "dialects/Train/LocationName.h"

#include "mlir/IR/IRMapping.h"

namespace ds {
#define GEN_PASS_DEF_SPLITALGORITHM
#include "compiler/passes/train/Passes.h.inc"
} // namespace ds

using namespace mlir;
using namespace ds;

namespace {

/// Moves what follows from gradients out of @forward, which becomes @microbatch, into @update.
class Splitter {
public:
  Splitter(func::FuncOp forward, SymbolTable &symbols)
      : forward_(forward), symbols_(symbols),
        builder_(ImplicitLocOpBuilder::atBlockEnd(forward.getLoc(), cast<ModuleOp>(symbols.getOp()).getBody())) {
    classify();
  }

  LogicalResult run() {
    if (gradients_.empty())
      return forward_.emitError("the training algorithm differentiates nothing; it needs a Gradient node");
    forward_->removeAttr(algorithmAttribute);
    makeLossMetric(forward_, symbols_);
    makeEvaluate(forward_, symbols_);
    makeUpdate();
    for (Operation *op : llvm::reverse(later_))
      op->erase();
    return makeMicrobatch();
  }

private:
  /// Marks what must come after the gradients, and what depends on an input or on chance.
  void classify() {
    for (Operation &op : forward_.getBody().front().without_terminator()) {
      auto any = [&](const llvm::DenseSet<Operation *> &set) {
        return llvm::any_of(op.getOperands(), [&](Value v) { return set.contains(v.getDefiningOp()); });
      };
      if (auto gradient = dyn_cast<train::GradientOp>(op)) {
        gradients_.push_back(gradient);
        perBatch_.insert(&op);
        continue;
      }
      const bool reads = llvm::any_of(op.getOperands(), [](Value v) { return isa<BlockArgument>(v); });
      if (reads || isa<train::DropoutOp, train::UniformOp>(op) || any(perBatch_))
        perBatch_.insert(&op);
      const bool fromGradient =
          llvm::any_of(op.getOperands(), [](Value v) { return isa_and_nonnull<train::GradientOp>(v.getDefiningOp()); });
      if (isa<train::StoreOp>(op) || fromGradient || any(isLater_)) {
        isLater_.insert(&op);
        later_.push_back(&op);
      }
    }
  }

  void makeUpdate() {
    setName(builder_, "update");
    auto update = func::FuncOp::create(builder_, "update", builder_.getFunctionType({}, {}));
    symbols_.insert(update);
    builder_.setInsertionPointToStart(update.addEntryBlock());
    IRMapping mapping;
    // All that is read is read before the first store.
    for (Operation *op : later_)
      for (Value operand : op->getOperands())
        if (!isLater_.contains(operand.getDefiningOp()))
          provide(operand, mapping);
    for (Operation *op : later_)
      builder_.clone(*op, mapping);
    SmallVector<train::VariableOp> norms;
    for (auto &[value, variable] : carried_)
      if (isa_and_nonnull<train::GradientOp>(value.getDefiningOp()))
        norms.push_back(variable);
    storeMetric(builder_, symbols_, gradientNormMetric, buildGradientNorm(builder_, norms));
    setName(builder_, "update");
    func::ReturnOp::create(builder_);
  }

  /// Makes `value` of @forward known in @update: carried over, or computed again where it depends on no input.
  void provide(Value value, IRMapping &mapping) {
    if (mapping.contains(value))
      return;
    Operation *op = value.getDefiningOp();
    if (!op || perBatch_.contains(op)) {
      train::VariableOp variable = carry(value);
      mapping.map(value, train::ReadOp::create(builder_, value.getLoc(), variable.getTensorType(),
                                               FlatSymbolRefAttr::get(variable.getSymNameAttr())));
      return;
    }
    for (Value operand : op->getOperands())
      provide(operand, mapping);
    builder_.clone(*op, mapping);
  }

  /// The variable that carries `value` from @microbatch to @update.
  train::VariableOp carry(Value value) {
    OpBuilder::InsertionGuard guard(builder_);
    builder_.setInsertionPoint(builder_.getInsertionBlock()->getParentOp());
    auto variable = train::VariableOp::create(builder_, value.getLoc(), train::VariableKind::Gradient, nameOf(value),
                                              cast<RankedTensorType>(value.getType()));
    symbols_.insert(variable); // makes the name unique
    carried_.emplace_back(value, variable);
    return variable;
  }

  /// "w::derivative" of a parameter, else after the value's own name. The variable is not `of` the parameter: that
  /// promises an update by one of our optimizers, which the checker of plans holds plans to.
  static std::string nameOf(Value value) {
    if (auto gradient = value.getDefiningOp<train::GradientOp>())
      if (auto read = gradient.getXs()[cast<OpResult>(value).getResultNumber()].getDefiningOp<train::ReadOp>())
        return (read.getVariable() + "::derivative").str();
    const std::string name = train::locationName(value.getLoc());
    return (name.empty() ? "step" : name) + "::value";
  }

  LogicalResult makeMicrobatch() {
    accumulateLoss(forward_);
    (void)symbols_.rename(forward_, "microbatch");
    builder_.setInsertionPointToEnd(&forward_.getBody().front());
    // Last, so that all that is no gradient comes before the backward pass.
    for (train::GradientOp gradient : gradients_)
      gradient->moveBefore(&forward_.getBody().front(), forward_.getBody().front().end());
    for (auto &[value, variable] : carried_)
      train::StoreOp::create(builder_, value.getLoc(), FlatSymbolRefAttr::get(variable.getSymNameAttr()), value);
    for (train::GradientOp gradient : gradients_) {
      if (cast<RankedTensorType>(gradient.getY().getType()).getRank() != 0)
        return gradient.emitError("the training algorithm differentiates ")
               << gradient.getY().getType() << "; it must be a scalar, the loss";
      builder_.setInsertionPoint(gradient);
      Value seed = train::LossGradientOp::create(builder_, gradient.getLoc(), gradient.getY().getType(), APFloat(1.0));
      if (failed(expandGradient(gradient, seed)))
        return failure();
    }
    builder_.setInsertionPointToEnd(&forward_.getBody().front());
    func::ReturnOp::create(builder_, forward_.getLoc());
    eraseDead(forward_);
    return success();
  }

  func::FuncOp forward_;
  SymbolTable &symbols_;
  ImplicitLocOpBuilder builder_;
  SmallVector<train::GradientOp> gradients_;
  SmallVector<Operation *> later_;                           // in program order
  llvm::DenseSet<Operation *> isLater_, perBatch_;           // looked up, never iterated
  SmallVector<std::pair<Value, train::VariableOp>> carried_; // from @microbatch to @update
};

struct SplitAlgorithm : ds::impl::SplitAlgorithmBase<SplitAlgorithm> {
  void runOnOperation() override {
    SymbolTable symbols(getOperation());
    auto candidate = symbols.lookup<func::FuncOp>("forward");
    if (!candidate || !candidate->hasAttr(algorithmAttribute))
      return;
    func::FuncOp forward = findForward(symbols);
    if (!forward || failed(Splitter(forward, symbols).run()))
      return signalPassFailure();
    dropStopGradients(getOperation());
  }
};

} // namespace
