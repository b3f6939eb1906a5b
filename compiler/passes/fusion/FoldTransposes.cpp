//===- FoldTransposes.cpp - let products read a transposed operand in place --===//
//
// For each operand of a train.matmul that a train.transpose makes: if the permutation swaps the last two
// dimensions, the product reads the operand from before the swap, with its flag turned over. What else the
// permutation moves stays a transpose, of whole rows. Cf. TransposeFolding in XLA; BLAS takes both forms at the
// same cost.
//
//===----------------------------------------------------------------------===//
#include "compiler/passes/fusion/Passes.h"
#include "dialects/Train/Train.h"

#include "mlir/IR/PatternMatch.h"

namespace ds {
#define GEN_PASS_DEF_FOLDTRANSPOSES
#include "compiler/passes/fusion/Passes.h.inc"
} // namespace ds

using namespace mlir;
using namespace ds;

namespace {

/// The transpose without its last swap, if leaving that to the product makes rows contiguous: [0, 2, 3, 1] is
/// [0, 2, 1, 3] with the last two dimensions swapped.
std::optional<SmallVector<int64_t>> withoutSwap(ArrayRef<int64_t> permutation) {
  const size_t rank = permutation.size();
  if (rank < 2 || permutation[rank - 2] != int64_t(rank - 1))
    return std::nullopt;
  SmallVector<int64_t> rest(permutation);
  std::swap(rest[rank - 2], rest[rank - 1]);
  return rest;
}

/// What `operand` is the swapped form of, or null.
Value untransposed(OpBuilder &builder, Value operand) {
  auto transpose = operand.getDefiningOp<train::TransposeOp>();
  if (!transpose)
    return {};
  auto rest = withoutSwap(transpose.getPerm());
  if (!rest)
    return {};
  if (llvm::is_sorted(*rest))
    return transpose.getInput();
  return train::TransposeOp::create(builder, transpose.getLoc(), transpose.getInput(), *rest);
}

struct FoldTransposes : ds::impl::FoldTransposesBase<FoldTransposes> {
  void runOnOperation() override {
    SmallVector<train::MatmulOp> products;
    getOperation().walk([&](train::MatmulOp op) { products.push_back(op); });
    for (train::MatmulOp op : products) {
      OpBuilder builder(op);
      if (Value lhs = untransposed(builder, op.getLhs())) {
        eraseIfUnused(op.getLhs(), [&] { op.getLhsMutable().assign(lhs); });
        op.setTransA(!op.getTransA());
      }
      if (Value rhs = untransposed(builder, op.getRhs())) {
        eraseIfUnused(op.getRhs(), [&] { op.getRhsMutable().assign(rhs); });
        op.setTransB(!op.getTransB());
      }
    }
  }

  /// Makes `replace` take the last use of `value` away and erases its op if nothing else reads it.
  static void eraseIfUnused(Value value, llvm::function_ref<void()> replace) {
    Operation *op = value.getDefiningOp();
    replace();
    if (op->use_empty())
      op->erase();
  }
};

} // namespace
