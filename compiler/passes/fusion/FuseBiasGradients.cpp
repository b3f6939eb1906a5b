//===- FuseBiasGradients.cpp - a bias' gradient with its weight's ---------===//
//
// The gradient of a linear layer's bias is the sum of the columns of dy, which the product for the weight's gradient
// reads anyway. Where both are of one dy, behind reshapes too, one train.linear_weight_grad makes both, at the place
// of the first. Cf. CUBLASLT_EPILOGUE_BGRADA and BGRADB.
//
//===----------------------------------------------------------------------===//
#include "compiler/passes/fusion/IsThereAt.h"
#include "compiler/passes/fusion/Passes.h"
#include "dialects/Train/Train.h"

namespace ds {
#define GEN_PASS_DEF_FUSEBIASGRADIENTS
#include "compiler/passes/fusion/Passes.h.inc"
} // namespace ds

using namespace mlir;
using namespace ds;

namespace {

Value behindReshapes(Value value) {
  while (auto reshape = value.getDefiningOp<train::ReshapeOp>())
    value = reshape.getInput();
  return value;
}

/// The columns that `sum` adds up over all rows, 0 where it does something else.
int64_t columnsOf(train::ReduceSumOp sum) {
  auto type = cast<RankedTensorType>(sum.getInput().getType());
  const bool isOfRows = int64_t(sum.getAxes().size()) == type.getRank() - 1 && type.getRank() > 1 &&
                        !llvm::is_contained(sum.getAxes(), type.getRank() - 1);
  return isOfRows ? type.getShape().back() : 0;
}

/// A product of a matrix's transpose and a matrix, by which of them is `gradient`.
struct WeightProduct {
  train::MatmulOp op;
  bool transposed; ///< the gradient is on the left

  Value gradient() { return transposed ? op.getLhs() : op.getRhs(); }
  Value input() { return transposed ? op.getRhs() : op.getLhs(); }
};

std::optional<WeightProduct> weightProductOf(train::MatmulOp op, Value dy, int64_t columns) {
  if (op.getBias() || !op.getTransA() || op.getTransB())
    return {};
  for (const bool transposed : {false, true}) {
    WeightProduct product{op, transposed};
    auto gradient = cast<RankedTensorType>(product.gradient().getType());
    auto input = cast<RankedTensorType>(product.input().getType());
    if (gradient.getRank() == 2 && input.getRank() == 2 && gradient.getDimSize(1) == columns &&
        behindReshapes(product.gradient()) == dy)
      return product;
  }
  return {};
}

struct FuseBiasGradients : ds::impl::FuseBiasGradientsBase<FuseBiasGradients> {
  void runOnOperation() override {
    SmallVector<train::ReduceSumOp> sums;
    getOperation().walk([&](train::ReduceSumOp op) { sums.push_back(op); });
    for (train::ReduceSumOp sum : sums)
      fuse(sum);
  }

private:
  static void fuse(train::ReduceSumOp sum) {
    const int64_t columns = columnsOf(sum);
    if (columns == 0)
      return;
    const Value dy = behindReshapes(sum.getInput());
    for (Operation &op : *sum->getBlock()) {
      auto matmul = dyn_cast<train::MatmulOp>(op);
      if (!matmul || matmul.getWide() != sum.getWide())
        continue;
      auto product = weightProductOf(matmul, dy, columns);
      if (product && tryFuse(sum, *product))
        return;
    }
  }

  /// Both results where the first was, if the product's operands are there by then.
  static bool tryFuse(train::ReduceSumOp sum, WeightProduct product) {
    Operation *first = sum->isBeforeInBlock(product.op) ? sum.getOperation() : product.op.getOperation();
    if (!isThereAt(product.gradient(), first) || !isThereAt(product.input(), first))
      return false;
    OpBuilder builder(first);
    auto fused = train::LinearWeightGradOp::create(builder, product.op.getLoc(), product.gradient(), product.input(),
                                                   product.transposed, sum.getWide());
    product.op.replaceAllUsesWith(fused.getWeight());
    sum.replaceAllUsesWith(fused.getBias());
    product.op.erase();
    sum.erase();
    return true;
  }
};

} // namespace
