//===- NarrowGradients.cpp - sum gradients in 16 bits ------------------------===//
//
// 1. Every accumulator of f32 gradients gets the smaller type.
// 2. What is added to it is rounded first. The addition is made in f32, and its result is rounded.
// The norm and the update read 16 bits as they are and compute in f32. Half the bytes are held, sent and moved; sums
// over many micro-batches lose what is small beside them. Cf. grad_accum_dtype of DeepSpeed.
//
//===----------------------------------------------------------------------===//
#include "compiler/passes/train/Passes.h"
#include "dialects/Train/Train.h"

#include "mlir/IR/Builders.h"

#include "llvm/ADT/DenseSet.h"

namespace ds {
#define GEN_PASS_DEF_NARROWGRADIENTS
#include "compiler/passes/train/Passes.h.inc"
} // namespace ds

using namespace mlir;
using namespace ds;

namespace {

struct NarrowGradients : ds::impl::NarrowGradientsBase<NarrowGradients> {
  using NarrowGradientsBase::NarrowGradientsBase;

  void runOnOperation() override {
    Builder builder(&getContext());
    const Type low = type == "bf16" ? Type(builder.getBF16Type()) : type == "f16" ? Type(builder.getF16Type()) : Type();
    if (!low) {
      getOperation().emitError() << "type is \"" << type << "\"; it must be bf16 or f16";
      return signalPassFailure();
    }
    llvm::DenseSet<Attribute> narrowed; // names; looked up
    for (auto variable : getOperation().getOps<train::VariableOp>())
      if (variable.getKind() == train::VariableKind::Gradient && variable.getTensorType().getElementType().isF32()) {
        variable.setType(variable.getTensorType().clone(low));
        narrowed.insert(variable.getSymNameAttr());
      }
    if (narrowed.empty()) // a model in float64
      return;
    getOperation().walk([&](train::AccumulateOp op) {
      if (!narrowed.contains(op.getVariableAttr().getAttr()))
        return;
      OpBuilder before(op);
      op.getValueMutable().assign(train::CastOp::create(before, op.getLoc(), op.getValue(), TypeAttr::get(low)));
    });
    train::raiseNumerics(getOperation(), train::Numerics::Lossy);
  }
};

} // namespace
