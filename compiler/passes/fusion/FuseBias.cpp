//===- FuseBias.cpp - let a product add its bias --------------------------===//
//
// For each train.add, in program order: if one side is a product that nothing else reads, without a bias yet, and
// the other a vector of its columns, both become one product with a bias. Kernels add it as they write the product:
// the epilogue of cuBLASLt (CUBLASLT_EPILOGUE_BIAS), torch.addmm.
//
//===----------------------------------------------------------------------===//
#include "compiler/passes/fusion/Passes.h"
#include "dialects/Train/Train.h"

namespace ds {
#define GEN_PASS_DEF_FUSEBIAS
#include "compiler/passes/fusion/Passes.h.inc"
} // namespace ds

using namespace mlir;
using namespace ds;

namespace {

struct FuseBias : ds::impl::FuseBiasBase<FuseBias> {
  void runOnOperation() override {
    SmallVector<train::AddOp> adds;
    getOperation().walk([&](train::AddOp op) { adds.push_back(op); });
    for (train::AddOp add : adds)
      if (!tryFuse(add, add.getLhs(), add.getRhs()))
        tryFuse(add, add.getRhs(), add.getLhs());
  }

  /// Turns `product + bias` into a product with bias, if they are of that form.
  static bool tryFuse(train::AddOp add, Value product, Value bias) {
    auto matmul = product.getDefiningOp<train::MatmulOp>();
    if (!matmul || matmul.getBias() || !product.hasOneUse() || product.getType() != add.getType())
      return false;
    auto type = cast<RankedTensorType>(product.getType());
    if (cast<RankedTensorType>(bias.getType()) != RankedTensorType::get(type.getShape().back(), type.getElementType()))
      return false;
    OpBuilder builder(add);
    auto fused = train::MatmulOp::create(builder, matmul.getLoc(), matmul.getLhs(), matmul.getRhs(), bias,
                                         matmul.getTransA(), matmul.getTransB());
    add.replaceAllUsesWith(fused.getResult());
    add.erase();
    matmul.erase();
    return true;
  }
};

} // namespace
