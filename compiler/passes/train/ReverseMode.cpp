//===- ReverseMode.cpp - gradients of straight-line code --------------------===//
//
// Reverse mode of automatic differentiation (Griewank and Walther, Evaluating Derivatives, 2nd ed., 2008), from
// source to source, over straight-line code:
//   1. Forward walk: a value is active if a leaf reaches it, other than by a train.stop_gradient, and it is of floating
//      point.
//   2. Backward walk: an op whose result has a gradient adds to the gradients of its active operands
//      (DifferentiableOpInterface). Contributions are added in the order in which the walk meets them.
//   3. A leaf's gradient is complete when the walk reaches the op that makes it.
//
//===----------------------------------------------------------------------===//
#include "compiler/passes/train/ReverseMode.h"

#include "dialects/Train/StopGradient.h"
#include "dialects/Train/Train.h"

using namespace mlir;
using namespace ds;

ReverseMode::ReverseMode(ArrayRef<Operation *> operations, ValueRange leaves, ValueRange fixed)
    : operations_(operations), leaves_(leaves), isLeaf_(leaves.begin(), leaves.end()),
      isFixed_(fixed.begin(), fixed.end()) {
  markActive();
}

/// A value is active if a leaf reaches it.
void ReverseMode::markActive() {
  active_.insert(leaves_.begin(), leaves_.end());
  for (Operation *op : operations_) {
    const bool active =
        !train::stopsGradient(op) && llvm::any_of(op->getOperands(), [&](Value v) { return isActive(v); });
    for (Value result : op->getResults())
      if (active && !isFixed_.contains(result) && isa<FloatType>(getElementTypeOrSelf(result.getType())))
        active_.insert(result);
  }
}

LogicalResult ReverseMode::run(OpBuilder &builder, Value value, Value seed,
                               function_ref<void(Value leaf, Value gradient)> complete) {
  gradients_[value] = seed;
  for (Operation *op : llvm::reverse(operations_)) {
    // All that reads a leaf comes after the op that makes it.
    for (Value result : op->getResults())
      if (Value gradient = isLeaf_.contains(result) ? gradients_.lookup(result) : Value())
        complete(result, gradient);
    if (failed(visit(builder, op)))
      return failure();
  }
  for (Value leaf : leaves_)
    if (Value gradient = isa<BlockArgument>(leaf) ? gradients_.lookup(leaf) : Value())
      complete(leaf, gradient);
  return success();
}

/// A sum that is kept in f32 hands an f32 gradient on to an operand of 16 bits.
static Value inTypeOf(OpBuilder &builder, Value value, Value gradient) {
  Type wanted = getElementTypeOrSelf(value.getType());
  if (getElementTypeOrSelf(gradient.getType()) == wanted)
    return gradient;
  return train::CastOp::create(builder, value.getLoc(), gradient, TypeAttr::get(wanted));
}

LogicalResult ReverseMode::visit(OpBuilder &builder, Operation *op) {
  SmallVector<Value> resultGradients;
  for (Value result : op->getResults())
    resultGradients.push_back(isLeaf_.contains(result) || isFixed_.contains(result) ? Value()
                                                                                    : gradients_.lookup(result));
  if (llvm::none_of(resultGradients, [](Value v) { return bool(v); }))
    return success();
  BitVector needed(op->getNumOperands());
  for (auto [index, operand] : llvm::enumerate(op->getOperands()))
    needed[index] = isActive(operand);
  if (needed.none())
    return success();
  auto differentiable = dyn_cast<train::DifferentiableOpInterface>(op);
  if (!differentiable)
    return op->emitOpError("has no gradient, and a trainable parameter depends on it; freeze the parameters above it");
  SmallVector<Value> operandGradients(op->getNumOperands());
  if (failed(differentiable.buildGradient(builder, resultGradients, needed, operandGradients)))
    return failure();
  for (auto [operand, gradient] : llvm::zip(op->getOperands(), operandGradients))
    if (gradient)
      contribute(builder, operand, inTypeOf(builder, operand, gradient));
  return success();
}

void ReverseMode::contribute(OpBuilder &builder, Value value, Value gradient) {
  Value &sum = gradients_[value];
  sum = sum ? train::AddOp::create(builder, value.getLoc(), sum, gradient).getResult() : gradient;
}

void ds::dropStopGradients(ModuleOp module) {
  module.walk([](train::CastOp cast) {
    if (!train::stopsGradient(cast))
      return;
    cast->removeAttr(train::stopGradientAttribute);
    if (cast.getInput().getType() != cast.getType()) // precision was lowered
      return;
    cast.replaceAllUsesWith(cast.getInput());
    cast.erase();
  });
}
