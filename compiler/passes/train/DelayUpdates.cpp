//===- DelayUpdates.cpp - each update is of the gradient of the step before ---===//
//
// 1. Beside each trained parameter lies a pending gradient, a variable of optimizer state. Its update reads that one.
// 2. What else an update reads (learning rate, step, factor, momentum) comes from the step before, too, through scalar
//    variables.
// 3. Behind the updates, this step's gradients and scalars are put there for the next step.
// In the first step the pending factor is 0, at which an update leaves everything as it is. So an update depends on
// nothing that its step computes, and the host has all of the step for it. The results are other ones: the module says
// that they are stale. Ren et al., ZeRO-Offload, USENIX ATC 2021, section 4.2 (delayed parameter update).
//
//===----------------------------------------------------------------------===//
#include "compiler/analysis/BucketIndex.h"
#include "compiler/analysis/Gradients.h"
#include "compiler/analysis/TrainStep.h"
#include "compiler/passes/train/Passes.h"
#include "compiler/passes/train/StepFunctions.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringMap.h"

namespace ds {
#define GEN_PASS_DEF_DELAYUPDATES
#include "compiler/passes/train/Passes.h.inc"
} // namespace ds

using namespace mlir;
using namespace ds;

namespace {

struct DelayUpdates : ds::impl::DelayUpdatesBase<DelayUpdates> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    SymbolTable symbols(module);
    symbols_ = &symbols;
    auto update = symbols.lookup<func::FuncOp>("update");
    if (!update) {
      module.emitError("has no @update; ds-insert-optimizer makes it");
      return signalPassFailure();
    }
    const Gradients gradients(module);
    SmallVector<Operation *> updates;
    for (Operation &op : update.getBody().front())
      if (const std::optional<StringAttr> parameter = updatedParameter(&op)) {
        if (failed(requireOwnGradient(&op, gradients.of(*parameter))))
          return signalPassFailure();
        updates.push_back(&op);
      }
    scalars_.clear();
    named_.clear();
    for (Operation *op : updates)
      delay(op, update);
    storeScalars(update);
    module->setAttr(train::staleAttribute, UnitAttr::get(&getContext()));
  }

private:
  static LogicalResult requireOwnGradient(Operation *op, train::VariableOp gradient) {
    if (gradient && op->getAttrOfType<FlatSymbolRefAttr>("gradient").getAttr() == gradient.getSymNameAttr())
      return success();
    return op->emitOpError("reads no gradient of its parameter that the step computes, so there is none to delay");
  }

  /// The update is of the pending gradient; this step's is put there at the end.
  void delay(Operation *op, func::FuncOp update) {
    auto parameter = op->getAttrOfType<FlatSymbolRefAttr>("parameter"),
         gradient = op->getAttrOfType<FlatSymbolRefAttr>("gradient");
    auto type = symbols_->lookup<train::VariableOp>(gradient.getValue()).getTensorType();
    const FlatSymbolRefAttr pending = makeVariable(update, pendingName(parameter.getValue()), type, parameter);
    op->setAttr("gradient", pending);
    for (OpOperand &operand : op->getOpOperands())
      operand.set(pendingScalar(operand, update));
    ImplicitLocOpBuilder b(op->getLoc(), update.getBody().front().getTerminator());
    train::StoreOp::create(b, pending, train::ReadOp::create(b, type, gradient));
  }

  /// What the step before has put into the scalar's variable, read ahead of all updates. Groups of parameters have
  /// rates of their own, which are numbered.
  Value pendingScalar(OpOperand &operand, func::FuncOp update) {
    const Value value = operand.get();
    Scalar &scalar = scalars_[value];
    if (scalar.pending)
      return scalar.pending;
    constexpr StringLiteral roles[] = {"rate", "step", "clip", "momentum"}; // of an update's operands, in their order
    const StringRef role = roles[operand.getOperandNumber()];
    const int number = named_[role]++;
    const std::string name = pendingScalarName(role) + (number == 0 ? "" : "::" + std::to_string(number));
    auto type = cast<RankedTensorType>(value.getType());
    scalar.variable = makeVariable(update, name, type, {});
    auto b = ImplicitLocOpBuilder::atBlockBegin(value.getLoc(), &update.getBody().front());
    return scalar.pending = train::ReadOp::create(b, type, scalar.variable);
  }

  void storeScalars(func::FuncOp update) {
    for (const auto &[value, scalar] : scalars_) {
      ImplicitLocOpBuilder b(value.getLoc(), update.getBody().front().getTerminator());
      train::StoreOp::create(b, scalar.variable, value);
    }
  }

  /// It begins with zeros.
  FlatSymbolRefAttr makeVariable(func::FuncOp before, StringRef name, RankedTensorType type,
                                 FlatSymbolRefAttr parameter) {
    ImplicitLocOpBuilder b(before.getLoc(), before);
    setName(b, name);
    auto zero = train::FillSourceAttr::get(b.getContext(), b.getF64FloatAttr(0));
    auto op = train::VariableOp::create(b, train::VariableKind::Optimizer, name, type, zero, parameter);
    return FlatSymbolRefAttr::get(symbols_->insert(op));
  }

  /// A scalar that updates read.
  struct Scalar {
    FlatSymbolRefAttr variable;
    Value pending;
  };

  SymbolTable *symbols_ = nullptr;
  llvm::MapVector<Value, Scalar> scalars_; // by this step's value, in the order of the updates
  llvm::StringMap<int> named_;             // scalars of each role; looked up
};

} // namespace
