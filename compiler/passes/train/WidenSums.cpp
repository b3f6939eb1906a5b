//===- WidenSums.cpp - sums that are read in f32 are not rounded ------------===//
//
//   1. A train.gather_grad whose rows are cast from 16 bits to f32 reads them uncast, and is marked `wide`.
//   2. For each cast from 16 bits to f32, upwards from it through reshapes and transposes that nothing else reads:
//      where the walk ends at a sum (a reduction, a gradient of a table or of convolution weights), the sum is marked
//      `wide`, all on the way becomes f32, and the cast goes. So does a product that is added to a gradient of a
//      parameter. Where the walk ends at a cast from f32, the value is read from before both casts.
// Kernels sum in f32 anyway, so this leaves a rounding out: what cuBLAS offers as 16-bit factors with an f32 result.
// Products of activations stay rounded, as torch.autocast rounds them: they are the widest tensors of a step, and
// writing and reading them takes twice as long in f32.
//
//===----------------------------------------------------------------------===//
#include "compiler/passes/train/Passes.h"
#include "dialects/Train/Train.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/TypeSwitch.h"

namespace ds {
#define GEN_PASS_DEF_WIDENSUMS
#include "compiler/passes/train/Passes.h.inc"
} // namespace ds

using namespace mlir;
using namespace ds;

namespace {

/// A cast from 16 bits to f32, or from f32 to 16 bits.
bool isWidening(Operation *op) {
  auto cast = dyn_cast_if_present<train::CastOp>(op);
  return cast && train::isNarrowFloat(getElementTypeOrSelf(cast.getInput().getType())) && cast.getElementType().isF32();
}
bool isNarrowing(Operation *op) {
  auto cast = dyn_cast_if_present<train::CastOp>(op);
  return cast && getElementTypeOrSelf(cast.getInput().getType()).isF32() && train::isNarrowFloat(cast.getElementType());
}

struct WidenSums : ds::impl::WidenSumsBase<WidenSums> {
  void runOnOperation() override {
    // Rows of 16 bits are added up as they are.
    getOperation().walk([](train::GatherGradOp op) {
      Operation *rows = op.getGradient().getDefiningOp();
      if (!isWidening(rows))
        return;
      op.getGradientMutable().assign(cast<train::CastOp>(rows).getInput());
      op.setWide(true);
      if (rows->use_empty())
        rows->erase();
    });
    SmallVector<train::CastOp> casts;
    getOperation().walk([&](train::CastOp op) {
      if (isWidening(op))
        casts.push_back(op);
    });
    for (train::CastOp cast : casts)
      if (Value wide = widened(cast.getInput(), isPartOfGradient(cast))) {
        cast.replaceAllUsesWith(wide);
        cast.erase();
      }
  }

private:
  /// Whether `value` ends in accumulators of gradients alone, added to others, scaled or moved on the way.
  static bool isPartOfGradient(Value value) {
    SmallVector<Value> open = {value};
    llvm::DenseSet<Operation *> known;
    while (!open.empty())
      for (Operation *reader : open.pop_back_val().getUsers()) {
        if (isa<train::AccumulateOp>(reader) || !known.insert(reader).second)
          continue;
        if (!isa<train::AddOp, train::MulOp, train::DivOp, train::ReshapeOp, train::TransposeOp, train::SliceOp,
                 train::PadOp, train::ConcatOp, train::CastOp>(reader)) // a cast: the type of the accumulator
          return false;
        open.push_back(reader->getResult(0));
      }
    return true;
  }

  /// `value` of 16 bits, whose one reader is a cast to f32, in f32 without having been rounded; or null. Products only
  /// where that is a part of a gradient.
  static Value widened(Value value, bool ofGradient) {
    Operation *op = value.getDefiningOp();
    if (isNarrowing(op)) { // whoever else reads it
      Value full = cast<train::CastOp>(op).getInput();
      return full;
    }
    if (!op || !value.hasOneUse())
      return {};
    if (isa<train::ReshapeOp, train::TransposeOp>(op)) {
      Value inner = widened(op->getOperand(0), ofGradient);
      if (!inner)
        return {};
      op->setOperand(0, inner);
      return setFull(value);
    }
    if (isa<train::MatmulOp>(op) && !ofGradient)
      return {};
    const bool sums = llvm::TypeSwitch<Operation *, bool>(op)
                          .Case<train::MatmulOp, train::ReduceSumOp, train::ReduceMeanOp, train::GatherGradOp,
                                train::ConvWeightGradOp>([](auto sum) {
                            sum.setWide(true);
                            return true;
                          })
                          .Default(false);
    return sums ? setFull(value) : Value();
  }

  static Value setFull(Value value) {
    value.setType(train::statisticsType(cast<RankedTensorType>(value.getType())));
    return value;
  }
};

} // namespace
