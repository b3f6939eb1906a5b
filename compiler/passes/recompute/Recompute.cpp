//===- Recompute.cpp - compute again in the backward what is not kept ---------===//
//
// Backward ops in program order. Where one reads a result of a forward op that is marked, clone that op in front of
// it, and before it the marked ops that it needs, each once: later readers take the clone's result. A clone has the
// location and reference ops of what it repeats, and dropout its op id, hence the same mask. Nothing that changes
// state is cloned. Cf. checkpointing (Chen et al., arXiv 1604.06174).
//
//===----------------------------------------------------------------------===//
#include "compiler/passes/recompute/Recompute.h"

#include "compiler/analysis/ForwardChain.h"
#include "compiler/analysis/OperandsFirst.h"
#include "compiler/analysis/Stages.h"
#include "compiler/passes/recompute/Passes.h"

#include "mlir/IR/IRMapping.h"

namespace ds {
#define GEN_PASS_DEF_RECOMPUTE
#include "compiler/passes/recompute/Passes.h.inc"
} // namespace ds

using namespace mlir;
using namespace ds;

namespace {

struct Recompute : ds::impl::RecomputeBase<Recompute> {
  void runOnOperation() override {
    SymbolTable symbols(getOperation());
    auto microbatch = symbols.lookup<func::FuncOp>("microbatch");
    if (!microbatch || !microbatch.getBody().hasOneBlock()) {
      getOperation().emitError("needs @microbatch, of one block; see ds-verify-train-form");
      return signalPassFailure();
    }
    const ForwardChain chain(microbatch, symbols);
    for (Operation *op : chain.forward)
      if (op->hasAttr(recomputeAttribute)) {
        if (!isMemoryEffectFree(op)) {
          op->emitOpError() << "changes state, so it cannot be done twice; take " << recomputeAttribute << " away";
          return signalPassFailure();
        }
        again_.insert(op);
      }
    for (Operation *reader : chain.backward)
      for (OpOperand &operand : reader->getOpOperands())
        operand.set(repeated(operand.get(), reader));
    for (Operation *op : chain.forward)
      op->removeAttr(recomputeAttribute);
  }

private:
  /// Whether `reader` of the backward is to read it made again. What another stage computes is kept, and sent.
  bool isRepeated(Value value, Operation *reader) const {
    Operation *op = underView(value).getDefiningOp();
    return op && again_.contains(op) && stageOf(op) == stageOf(reader);
  }

  /// `value` as `reader` of the backward is to read it: made again in front of it, once, with all it needs that is not
  /// kept.
  Value repeated(Value value, Operation *reader) {
    if (!isRepeated(value, reader))
      return value;
    visitOperandsFirst(
        value, [&](Value next) { return isRepeated(next, reader) && !copies_.contains(next); },
        [&](Value next) {
          Operation *made = next.getDefiningOp(); // the op that is done again, or a reshape above it
          IRMapping mapping;
          for (Value operand : made->getOperands())
            if (isRepeated(operand, reader))
              mapping.map(operand, copies_.lookup(operand));
          Operation *copy = OpBuilder(reader).clone(*made, mapping);
          copy->removeAttr(recomputeAttribute);
          copy->setAttr(recomputedAttribute, UnitAttr::get(copy->getContext()));
          if (Attribute stage = reader->getAttr(pipelineStageAttribute))
            copy->setAttr(pipelineStageAttribute, stage);
          for (auto [result, again] : llvm::zip(made->getResults(), copy->getResults()))
            copies_[result] = again;
        });
    return copies_.lookup(value);
  }

  llvm::DenseSet<Operation *> again_;   // looked up
  llvm::DenseMap<Value, Value> copies_; // of the forward's values
};

} // namespace
