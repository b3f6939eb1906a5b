//===- PadVocabulary.cpp - rows of logits that a GPU's products can take ---===//
//
// A vocabulary of 50,257 tokens makes rows of logits that begin at odd addresses; products of 16 bits with such rows
// run several times slower. So the weight of the product that makes logits gets columns of zeros behind its own, up
// to a multiple of 64, and the loss is told how many columns are classes. Megatron's make-vocab-size-divisible-by pads
// the parameter itself; here it keeps its shape, and only what a step computes is padded.
//
//===----------------------------------------------------------------------===//
#include "compiler/passes/fusion/Passes.h"
#include "dialects/Train/Train.h"

#include "llvm/Support/MathExtras.h"

namespace ds {
#define GEN_PASS_DEF_PADVOCABULARY
#include "compiler/passes/fusion/Passes.h.inc"
} // namespace ds

using namespace mlir;
using namespace ds;

namespace {

/// Columns that rows are padded to a multiple of, and those that need none: 16 bytes of the narrowest type.
constexpr int64_t multiple = 64, aligned = 16 / int64_t(sizeof(uint16_t));

RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }

/// The product that makes the logits, behind reshapes that leave rows whole and that nothing else reads.
train::MatmulOp productOf(Value logits) {
  const int64_t columns = typeOf(logits).getShape().back();
  while (logits.hasOneUse() && typeOf(logits).getShape().back() == columns) {
    if (auto matmul = logits.getDefiningOp<train::MatmulOp>())
      return matmul;
    auto reshape = logits.getDefiningOp<train::ReshapeOp>();
    if (!reshape)
      return {};
    logits = reshape.getInput();
  }
  return {};
}

/// `value` with zeros behind the elements of a dimension.
Value padded(OpBuilder &builder, Location location, Value value, int64_t axis, int64_t size) {
  const int64_t rank = typeOf(value).getRank();
  SmallVector<int64_t> none(rank, 0), high(rank, 0);
  high[axis] = size - typeOf(value).getDimSize(axis);
  return train::PadOp::create(builder, location, value, none, high, none, APFloat(0.0));
}

struct PadVocabulary : ds::impl::PadVocabularyBase<PadVocabulary> {
  void runOnOperation() override {
    getOperation().walk([](train::CrossEntropyOp loss) {
      const int64_t classes = typeOf(loss.getLogits()).getDimSize(1);
      train::MatmulOp product = productOf(loss.getLogits());
      if (loss.getClasses() || classes % aligned == 0 || !product || typeOf(product.getRhs()).getRank() != 2)
        return;
      pad(product, int64_t(llvm::alignTo(uint64_t(classes), uint64_t(multiple))));
      loss.setClasses(uint64_t(classes));
    });
  }

private:
  /// Gives the product's weight and bias, and all up to the loss, so many columns.
  static void pad(train::MatmulOp product, int64_t columns) {
    OpBuilder builder(product);
    product.getRhsMutable().assign(
        padded(builder, product.getLoc(), product.getRhs(), product.getTransB() ? 0 : 1, columns));
    if (product.getBias())
      product.getBiasMutable().assign(padded(builder, product.getLoc(), product.getBias(), 0, columns));
    for (Operation *op = product; !isa<train::CrossEntropyOp>(op); op = *op->user_begin()) {
      SmallVector<int64_t> shape(typeOf(op->getResult(0)).getShape());
      shape.back() = columns;
      if (auto reshape = dyn_cast<train::ReshapeOp>(op))
        reshape.setShape(shape);
      op->getResult(0).setType(typeOf(op->getResult(0)).clone(shape));
    }
  }
};

} // namespace
