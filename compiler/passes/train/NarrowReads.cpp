//===- NarrowReads.cpp - reads of variables that have become narrower ----------===//
#include "compiler/passes/train/NarrowReads.h"

#include "compiler/passes/train/PrecisionTable.h"

#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace ds;

bool ds::onlyMoves(Operation *op) {
  const OpPrecision *precision = precisionOf(op->getName().stripDialect());
  return precision && precision->kind == OpKind::Movement && op->getNumResults() == 1 &&
         llvm::none_of(op->getOperands().drop_front(),
                       [](Value value) { return isa<FloatType>(getElementTypeOrSelf(value.getType())); });
}

/// Gives the readers of `wide`, of f32, what they read of `low`, the same in 16 bits.
static void narrowReaders(Value wide, Value low) {
  const Type type = getElementTypeOrSelf(low.getType());
  for (OpOperand &use : llvm::make_early_inc_range(wide.getUses())) {
    Operation *reader = use.getOwner();
    if (auto rounding = dyn_cast<train::CastOp>(reader); rounding && rounding.getElementType() == type) {
      rounding.replaceAllUsesWith(low);
      rounding.erase();
    } else if (use.getOperandNumber() == 0 && onlyMoves(reader)) {
      Operation *moved = OpBuilder(reader).clone(*reader);
      moved->setOperand(0, low);
      Value result = moved->getResult(0);
      result.setType(cast<RankedTensorType>(result.getType()).clone(type));
      narrowReaders(reader->getResult(0), result);
      reader->erase();
    }
  }
  if (wide.use_empty())
    return;
  OpBuilder after(low.getContext());
  after.setInsertionPointAfter(low.getDefiningOp());
  Type f32 = getElementTypeOrSelf(wide.getType());
  wide.replaceAllUsesWith(train::CastOp::create(after, low.getLoc(), low, TypeAttr::get(f32)).getResult());
}

void ds::narrowRead(train::ReadOp read, FloatType low) {
  OpBuilder before(read);
  auto type = cast<RankedTensorType>(read.getType()).clone(low);
  narrowReaders(read, train::ReadOp::create(before, read.getLoc(), type, read.getVariableAttr()));
  read.erase();
}
