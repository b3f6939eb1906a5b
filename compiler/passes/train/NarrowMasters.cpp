//===- NarrowMasters.cpp - trained parameters of 16 bits ---------------------===//
//
// 1. Every trained parameter of f32 gets the smaller type; its first value is rounded when it is loaded.
// 2. Who rounded what it read reads 16 bits as they are, also through ops that only move elements. Who computes in f32
//    reads them widened.
// The update computes in f32 and rounds once. A parameter takes half the bytes; steps that are small beside it are
// lost. Cf. bf16_master_weights_and_grads of DeepSpeed.
//
//===----------------------------------------------------------------------===//
#include "compiler/passes/train/Passes.h"
#include "compiler/passes/train/PrecisionTable.h"
#include "dialects/Train/Train.h"

#include "mlir/IR/Builders.h"

#include "llvm/ADT/DenseSet.h"

namespace ds {
#define GEN_PASS_DEF_NARROWMASTERS
#include "compiler/passes/train/Passes.h.inc"
} // namespace ds

using namespace mlir;
using namespace ds;

namespace {

/// Where the first value of a variable comes from that is now `low`, and was f32.
Attribute narrowedSource(Attribute source, FloatType low) {
  if (auto file = dyn_cast<train::FileSourceAttr>(source)) {
    const StringRef own = low.isBF16() ? "BF16" : "F16", stored = file.getDtype().empty() ? "F32" : file.getDtype();
    return train::FileSourceAttr::get(source.getContext(), file.getPath(), file.getOffset(), file.getLength(),
                                      stored == own ? "" : stored);
  }
  auto literal = dyn_cast<train::LiteralSourceAttr>(source);
  auto elements = literal ? dyn_cast<DenseElementsAttr>(literal.getValue()) : DenseElementsAttr();
  if (!elements)
    return source;
  return train::LiteralSourceAttr::get(source.getContext(), elements.mapValues(low, [&](APFloat value) {
    bool loses = false;
    value.convert(low.getFloatSemantics(), APFloat::rmNearestTiesToEven, &loses);
    return value.bitcastToAPInt();
  }));
}

/// Whether `op` only moves elements of its first operand, its one float.
bool onlyMoves(Operation *op) {
  const OpPrecision *precision = precisionOf(op->getName().stripDialect());
  return precision && precision->kind == OpKind::Movement && op->getNumResults() == 1 &&
         llvm::none_of(op->getOperands().drop_front(),
                       [](Value value) { return isa<FloatType>(getElementTypeOrSelf(value.getType())); });
}

/// Gives the readers of `wide`, of f32, what they read of `low`, the same in 16 bits.
void narrowReaders(Value wide, Value low) {
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

struct NarrowMasters : ds::impl::NarrowMastersBase<NarrowMasters> {
  using NarrowMastersBase::NarrowMastersBase;

  void runOnOperation() override {
    Builder builder(&getContext());
    const FloatType low = type == "bf16"  ? FloatType(builder.getBF16Type())
                          : type == "f16" ? FloatType(builder.getF16Type())
                                          : FloatType();
    if (!low) {
      getOperation().emitError() << "type is \"" << type << "\"; it must be bf16 or f16";
      return signalPassFailure();
    }
    llvm::DenseSet<Attribute> narrowed; // names; looked up
    for (auto variable : getOperation().getOps<train::VariableOp>())
      if (variable.getTrainable() && variable.getTensorType().getElementType().isF32()) {
        variable.setType(variable.getTensorType().clone(low));
        variable.setSourceAttr(narrowedSource(*variable.getSource(), low));
        narrowed.insert(variable.getSymNameAttr());
      }
    if (narrowed.empty()) // a model in float64
      return;
    SmallVector<train::ReadOp> reads;
    getOperation().walk([&](train::ReadOp read) {
      if (narrowed.contains(read.getVariableAttr().getAttr()))
        reads.push_back(read);
    });
    for (train::ReadOp read : reads) {
      OpBuilder before(read);
      auto type = cast<RankedTensorType>(read.getType()).clone(low);
      narrowReaders(read, train::ReadOp::create(before, read.getLoc(), type, read.getVariableAttr()));
      read.erase();
    }
    train::raiseNumerics(getOperation(), train::Numerics::Lossy);
  }
};

} // namespace
