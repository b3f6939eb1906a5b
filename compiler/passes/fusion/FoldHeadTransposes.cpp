//===- FoldHeadTransposes.cpp - let attention read heads where projections write them ---===//
//
// A projection writes [batch, sequence, heads, depth]; exporters transpose query, key and value to [batch, heads,
// sequence, depth], and the result back. Where all four are transposed so, attention takes the first layout, and the
// transposes go, with those of the gradients. That is the layout of FlashAttention (Dao, 2023) and of torch's
// scaled_dot_product_attention on such strides.
//
//===----------------------------------------------------------------------===//
#include "compiler/passes/fusion/Passes.h"
#include "dialects/Train/Train.h"

#include "llvm/ADT/SetVector.h"

namespace ds {
#define GEN_PASS_DEF_FOLDHEADTRANSPOSES
#include "compiler/passes/fusion/Passes.h.inc"
} // namespace ds

using namespace mlir;
using namespace ds;

namespace {

/// A transpose that exchanges heads and sequence; null for other ops.
train::TransposeOp headTranspose(Operation *op) {
  auto transpose = dyn_cast_or_null<train::TransposeOp>(op);
  return transpose && transpose.getPerm() == ArrayRef<int64_t>{0, 2, 1, 3} ? transpose : train::TransposeOp();
}

struct FoldHeadTransposes : ds::impl::FoldHeadTransposesBase<FoldHeadTransposes> {
  void runOnOperation() override {
    SmallVector<train::AttentionOp> attentions;
    getOperation().walk([&](train::AttentionOp op) { attentions.push_back(op); });
    for (train::AttentionOp op : attentions)
      if (isTransposed(op))
        fold(op);
  }

private:
  static bool isTransposed(train::AttentionOp op) {
    return !op.getBshd() && !op.getResult().use_empty() &&
           llvm::all_of(ValueRange{op.getQuery(), op.getKey(), op.getValue()},
                        [](Value operand) { return headTranspose(operand.getDefiningOp()); }) &&
           llvm::all_of(op.getResult().getUsers(), headTranspose);
  }

  static void fold(train::AttentionOp op) {
    llvm::SetVector<Operation *> transposes;
    const auto untransposed = [&](Value operand) {
      transposes.insert(operand.getDefiningOp());
      return headTranspose(operand.getDefiningOp()).getInput();
    };
    OpBuilder builder(op);
    const Value query = untransposed(op.getQuery()), key = untransposed(op.getKey()),
                value = untransposed(op.getValue());
    auto folded = train::AttentionOp::create(builder, op.getLoc(), query, key, value, op.getMask(), op.getScale(),
                                             op.getCausal(), /*bshd=*/true);
    for (Operation *user : llvm::make_early_inc_range(op.getResult().getUsers())) {
      user->getResult(0).replaceAllUsesWith(folded.getResult());
      user->erase();
    }
    op.getLse().replaceAllUsesWith(folded.getLse());
    op.erase();
    for (Operation *transpose : transposes)
      if (transpose->use_empty())
        transpose->erase();
  }
};

} // namespace
