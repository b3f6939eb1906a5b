//===- RepeatElementwise.cpp - compute cheap values again in the backward ---===//
//
// 1. Kept: what the backward reads of the forward pass, cheap or not; of f32 that elementwise ops make of values of 16
//    bits, those, if they have fewer bytes.
// 2. In program order, a kept result of an elementwise op becomes cheap if each of its operands is a constant, a read
//    of a variable, a graph input, cheap, or kept for another reason: that is, kept and not made cheap itself, or a
//    chain of elementwise ops down to such values.
// 3. Where the backward reads a cheap value, its chain is cloned in front of the first reader: once for the elementwise
//    ops that read it, and once for all others. So one loop makes what a product reads, another goes on from the kept
//    values to the gradient, and they hand no values of the chain to each other through memory. With `once` there is
//    one chain for both; with `keep-operands` all others read what is kept, unless it is made of nothing but variables,
//    constants and graph inputs.
// Pointwise ops are repeated for the same reason by torch.compile's partitioner (He and Zachariah, "Min-cut optimal(*)
// recomputation", 2022): they cost less than reading what they would have kept.
//
//===----------------------------------------------------------------------===//
#include "compiler/analysis/ForwardChain.h"
#include "compiler/analysis/OperandsFirst.h"
#include "compiler/analysis/Stages.h"
#include "compiler/passes/recompute/Passes.h"
#include "dialects/Train/Train.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/IRMapping.h"

#include "llvm/ADT/SetVector.h"

namespace ds {
#define GEN_PASS_DEF_REPEATELEMENTWISE
#include "compiler/passes/recompute/Passes.h.inc"
} // namespace ds

using namespace mlir;
using namespace ds;

namespace {

class Repeating {
public:
  Repeating(Block &block, bool once, bool keepsOperands) : once_(once), keepsOperands_(keepsOperands) {
    bool backward = false;
    for (Operation &op : block) {
      backward |= isa<train::LossGradientOp>(op);
      (backward ? backward_ : forward_).push_back(&op);
    }
    later_.insert(backward_.begin(), backward_.end());
  }

  void run() {
    for (Operation *op : backward_)
      for (Value operand : op->getOperands())
        if (Operation *producer = operand.getDefiningOp(); producer && !later_.contains(producer))
          keep(operand);
    for (Operation *op : forward_)
      if (op->hasTrait<train::Elementwise>() && llvm::all_of(op->getOperands(), [&](Value v) { return isAtHand(v); })) {
        cheap_.insert(op->getResult(0));
        if (llvm::all_of(op->getOperands(), [&](Value v) { return isFromOutside(v); }))
          fromOutside_.insert(op->getResult(0));
      }
    for (Operation *op : backward_)
      for (OpOperand &operand : op->getOpOperands())
        operand.set(repeated(operand.get(), op));
  }

private:
  void keep(Value value) {
    value = underView(value); // reshapes cost nothing and are repeated anyway
    kept_.insert(value);
    if (getElementTypeOrSelf(value.getType()).isF32())
      kept_.insert_range(narrowSources(value));
  }

  /// What of 16 bits elementwise ops of one stage make `value` of, beside variables, constants and graph inputs;
  /// nothing where they make it of something else, too, or that has no fewer bytes than `value`.
  static SmallVector<Value> narrowSources(Value value) {
    SmallVector<Value> open = {value}, sources;
    llvm::DenseSet<Value> known;
    int64_t left = bytesOf(value);
    while (!open.empty()) {
      const Value next = underView(open.pop_back_val());
      Operation *op = next.getDefiningOp();
      if (!op || isa<train::ConstantOp, train::ReadOp>(op) || !known.insert(next).second)
        continue;
      if (train::isNarrowFloat(getElementTypeOrSelf(next.getType()))) {
        sources.push_back(next);
        left -= bytesOf(next);
        if (left <= 0)
          return {};
      } else if (op->hasTrait<train::Elementwise>() && stageOf(op) == stageOf(value.getDefiningOp())) {
        llvm::append_range(open, op->getOperands());
      } else {
        return {};
      }
    }
    return sources;
  }

  bool isAtHand(Value value) const {
    value = underView(value);
    return isFromOutside(value) || cheap_.contains(value) || kept_.contains(value);
  }

  /// Made of variables, constants and graph inputs alone, as weights in 16 bits are.
  bool isFromOutside(Value value) const {
    value = underView(value);
    Operation *op = value.getDefiningOp();
    return !op || isa<train::ConstantOp, train::ReadOp>(op) || fromOutside_.contains(value);
  }

  /// What another stage has computed is kept, and sent.
  static bool isOfStage(Operation *op, Operation *reader) {
    return isa<train::ReshapeOp>(op) || !stageOf(op) || stageOf(op) == stageOf(reader);
  }

  /// Whether `reader` of the backward pass is to read a copy of it.
  bool isRepeated(Value value, Operation *reader) const {
    Operation *op = value.getDefiningOp();
    return op && !later_.contains(op) && cheap_.contains(underView(value)) && isOfStage(op, reader) &&
           (!keepsOperands_ || reader->hasTrait<train::Elementwise>() || isFromOutside(value));
  }

  /// `value` as `reader` of the backward pass may read it.
  Value repeated(Value value, Operation *reader) {
    if (!isRepeated(value, reader))
      return value;
    llvm::DenseMap<Value, Value> &copies = !once_ && reader->hasTrait<train::Elementwise>() ? copiesForLoops_ : copies_;
    visitOperandsFirst(
        value, [&](Value next) { return isRepeated(next, reader) && !copies.contains(next); },
        [&](Value next) {
          IRMapping mapping;
          for (Value operand : next.getDefiningOp()->getOperands())
            if (isRepeated(operand, reader))
              mapping.map(operand, copies.lookup(operand));
          copies[next] = OpBuilder(reader).clone(*next.getDefiningOp(), mapping)->getResult(0);
        });
    return copies.lookup(value);
  }

  const bool once_, keepsOperands_;
  SmallVector<Operation *> forward_, backward_;
  llvm::DenseSet<Operation *> later_;                    // of the backward pass
  llvm::DenseSet<Value> kept_, cheap_, fromOutside_;     // looked up, never iterated
  llvm::DenseMap<Value, Value> copies_, copiesForLoops_; // of the forward's values
};

struct RepeatElementwise : ds::impl::RepeatElementwiseBase<RepeatElementwise> {
  using RepeatElementwiseBase::RepeatElementwiseBase;

  void runOnOperation() override {
    for (auto function : getOperation().getOps<func::FuncOp>())
      for (Block &block : function.getBody())
        Repeating(block, once, keepOperands).run();
  }
};

} // namespace
