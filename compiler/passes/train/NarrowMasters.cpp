//===- NarrowMasters.cpp - trained parameters of 16 bits ---------------------===//
//
// 1. Every trained parameter of f32 gets the smaller type; its first value is rounded when it is loaded.
// 2. Who rounded what it read reads 16 bits as they are, also through ops that only move elements. Who computes in f32
//    reads them widened.
// The update computes in f32 and rounds once. A parameter takes half the bytes; steps that are small beside it are
// lost. Cf. bf16_master_weights_and_grads of DeepSpeed.
//
//===----------------------------------------------------------------------===//
#include "compiler/passes/train/NarrowReads.h"
#include "compiler/passes/train/Passes.h"
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
    for (train::ReadOp read : reads)
      narrowRead(read, low);
    train::raiseNumerics(getOperation(), train::Numerics::Lossy);
  }
};

} // namespace
