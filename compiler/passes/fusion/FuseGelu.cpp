//===- FuseGelu.cpp - let a product take its GELU, or its gradient's -------===//
//
// A kernel that has a product at hand takes train.gelu_tanh of it as it writes it, and of the gradient's product the
// multiplication by train.gelu_tanh_slope: the epilogues GELU_AUX_BIAS and DGELU of cuBLASLt. Both numbers in 16 bits
// and casts to float32 and back stand between them, and reshapes. A GELU that the backward pass computes again, of a
// product that the forward pass has made, stays as it is.
//
//===----------------------------------------------------------------------===//
#include "compiler/analysis/Stages.h"
#include "compiler/analysis/TrainStep.h"
#include "compiler/passes/fusion/Passes.h"
#include "dialects/Train/Train.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace ds {
#define GEN_PASS_DEF_FUSEGELU
#include "compiler/passes/fusion/Passes.h.inc"
} // namespace ds

using namespace mlir;
using namespace ds;

namespace {

/// Collects the ops between a product and what becomes of it.
struct Chain {
  SmallVector<Operation *> ops;

  Operation *add(Operation *op) {
    if (op)
      ops.push_back(op);
    return op;
  }

  /// `value` before reshapes, and before a cast of 16 bits to float32.
  Value source(Value value) {
    if (auto cast = value.getDefiningOp<train::CastOp>();
        cast && train::isNarrowFloat(getElementTypeOrSelf(cast.getInput().getType())) && cast.getElementType().isF32())
      value = add(cast)->getOperand(0);
    while (auto reshape = value.getDefiningOp<train::ReshapeOp>())
      value = reshape.getInput();
    return value;
  }

  /// `value` in `element`: itself, or what the cast makes that alone reads it.
  Value narrowed(Value value, Type element) {
    if (getElementTypeOrSelf(value.getType()) == element)
      return value;
    auto cast = value.hasOneUse() ? dyn_cast<train::CastOp>(*value.user_begin()) : train::CastOp();
    return cast && cast.getElementType() == element ? add(cast)->getResult(0) : Value();
  }

  /// Marks `fused` as all of `product` and the chain.
  void nameOn(Operation *fused, Operation *product) const {
    SmallVector<int64_t> reference;
    for (Operation *op : llvm::concat<Operation *const>(ArrayRef(product), ops))
      if (auto numbers = op->getAttrOfType<DenseI64ArrayAttr>(referenceAttribute))
        llvm::append_range(reference, numbers.asArrayRef());
    if (!reference.empty())
      fused->setAttr(referenceAttribute, Builder(fused->getContext()).getDenseI64ArrayAttr(reference));
    if (Attribute stage = product->getAttr(pipelineStageAttribute))
      fused->setAttr(pipelineStageAttribute, stage);
  }
};

/// `value` in the shape of `type`.
Value inShapeOf(OpBuilder &builder, Value value, Type type) {
  if (value.getType() == type)
    return value;
  return train::ReshapeOp::create(builder, value.getLoc(), value, cast<RankedTensorType>(type).getShape());
}

/// A product that others may be fused with.
train::MatmulOp productOf(Value value) {
  auto matmul = value.getDefiningOp<train::MatmulOp>();
  return matmul && !matmul.getWide() ? matmul : train::MatmulOp();
}

struct FuseGelu : ds::impl::FuseGeluBase<FuseGelu> {
  void runOnOperation() override {
    for (auto function : getOperation().getOps<func::FuncOp>())
      for (Block &block : function.getBody()) {
        numberSides(block);
        for (auto gelu : llvm::make_early_inc_range(block.getOps<train::GeluTanhOp>()))
          fuse(gelu);
        for (auto slope : llvm::make_early_inc_range(block.getOps<train::GeluTanhSlopeOp>()))
          fuse(slope);
        for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
          if (isa<train::MatmulOp, train::CastOp, train::ReshapeOp, train::GeluTanhOp, train::GeluTanhSlopeOp,
                  train::MulOp>(op) &&
              isOpTriviallyDead(&op))
            op.erase();
      }
  }

private:
  void numberSides(Block &block) {
    int64_t side = 0;
    for (Operation &op : block) {
      side += isa<train::LossGradientOp>(op);
      sides_[&op] = side;
    }
  }

  bool standTogether(Operation *a, Operation *b) const {
    return sides_.lookup(a) == sides_.lookup(b) && stageOf(a) == stageOf(b);
  }

  void fuse(train::GeluTanhOp gelu) {
    Chain chain;
    auto matmul = productOf(chain.source(gelu.getInput()));
    if (!matmul || !standTogether(matmul, gelu))
      return;
    chain.add(gelu);
    const Value last = chain.narrowed(gelu.getResult(), getElementTypeOrSelf(matmul.getType()));
    if (!last || !standTogether(matmul, last.getDefiningOp()))
      return;
    OpBuilder builder(matmul);
    auto fused = train::MatmulGeluTanhOp::create(builder, matmul.getLoc(), matmul.getLhs(), matmul.getRhs(),
                                                 matmul.getBias(), matmul.getTransA(), matmul.getTransB());
    chain.nameOn(fused, matmul);
    sides_[fused] = sides_.lookup(matmul);
    builder.setInsertionPoint(last.getDefiningOp());
    Value(last).replaceAllUsesWith(inShapeOf(builder, fused.getResult(), last.getType()));
    matmul.replaceAllUsesWith(fused.getProduct());
    matmul.erase();
  }

  void fuse(train::GeluTanhSlopeOp slope) {
    auto factor = slope->hasOneUse() ? dyn_cast<train::MulOp>(*slope->user_begin()) : train::MulOp();
    if (!factor)
      return;
    Chain chain;
    const Value gradient = factor.getLhs() == slope.getResult() ? factor.getRhs() : factor.getLhs();
    auto matmul = productOf(chain.source(gradient));
    if (!matmul || matmul.getBias() || !matmul->hasOneUse() || !gradient.hasOneUse() || !standTogether(matmul, factor))
      return;
    const Value input = chain.source(slope.getInput());
    chain.add(slope);
    chain.add(factor);
    const Value last = chain.narrowed(factor.getResult(), getElementTypeOrSelf(matmul.getType()));
    if (!last || getElementTypeOrSelf(input.getType()) != getElementTypeOrSelf(matmul.getType()) ||
        cast<RankedTensorType>(input.getType()).getNumElements() !=
            cast<RankedTensorType>(matmul.getType()).getNumElements() ||
        !standTogether(matmul, last.getDefiningOp()))
      return;
    OpBuilder builder(last.getDefiningOp());
    auto fused = train::MatmulGeluTanhGradOp::create(builder, matmul.getLoc(), matmul.getLhs(), matmul.getRhs(),
                                                     inShapeOf(builder, input, matmul.getType()), matmul.getTransA(),
                                                     matmul.getTransB());
    chain.nameOn(fused, matmul);
    Value(last).replaceAllUsesWith(inShapeOf(builder, fused.getResult(), last.getType()));
  }

  llvm::DenseMap<Operation *, int64_t> sides_; ///< 1: backward
};

} // namespace
