//===- NarrowFrozen.cpp - hold what is frozen as its file has it -------------===//
//
// A parameter that is not trained, and that its file has in 16 bits, was widened for its sum's sake. Nothing is added
// to it here, so it may stay as it is stored where all of it is used in that type:
//   1. Follow its value through what moves it. Each end must round it to the stored type, or read rows of it alone.
//   2. The variable gets that type, the roundings go, and rows that are read in f32 are widened.
// Widening is exact and rounding gives back what was stored: the bits of all results stay. Half the bytes are held,
// read from files and gathered. Nothing is refused: what does not qualify stays float32. Cf. peft, which leaves a base
// model in the type that it was loaded in.
//
//===----------------------------------------------------------------------===//
#include "compiler/passes/train/NarrowReads.h"
#include "compiler/passes/train/Passes.h"
#include "dialects/Train/Train.h"

#include "mlir/IR/Builders.h"

#include "llvm/ADT/MapVector.h"

namespace ds {
#define GEN_PASS_DEF_NARROWFROZEN
#include "compiler/passes/train/Passes.h.inc"
} // namespace ds

using namespace mlir;
using namespace ds;

namespace {

/// The type of a variable's elements in its file, if they were widened and the variable is not trained; else null.
FloatType storedType(train::VariableOp variable) {
  auto file = dyn_cast_if_present<train::FileSourceAttr>(variable.getSource().value_or(Attribute()));
  if (!file || variable.getKind() != train::VariableKind::Parameter || variable.getTrainable())
    return {};
  Builder builder(variable.getContext());
  return file.getDtype() == "BF16"  ? FloatType(builder.getBF16Type())
         : file.getDtype() == "F16" ? FloatType(builder.getF16Type())
                                    : FloatType();
}

bool isRoundingTo(Operation *op, Type low) {
  return isa<train::CastOp>(op) && getElementTypeOrSelf(op->getResult(0).getType()) == low;
}

/// Whether every use of a parameter's value is in 16 bits in the end. Of rows that were gathered any use will do: they
/// are few.
bool isUsedIn(Type low, Value value) {
  return llvm::all_of(value.getUsers(), [&](Operation *user) {
    return isRoundingTo(user, low) || isa<train::GatherOp>(user) ||
           (onlyMoves(user) && isUsedIn(low, user->getResult(0)));
  });
}

struct NarrowFrozen : ds::impl::NarrowFrozenBase<NarrowFrozen> {
  using NarrowFrozenBase::NarrowFrozenBase;

  void runOnOperation() override {
    llvm::MapVector<Attribute, SmallVector<train::ReadOp>> reads; // by variable
    getOperation().walk([&](train::ReadOp read) { reads[read.getVariableAttr().getAttr()].push_back(read); });
    for (auto variable : getOperation().getOps<train::VariableOp>()) {
      const FloatType low = storedType(variable);
      ArrayRef<train::ReadOp> all = reads[variable.getSymNameAttr()];
      if (!low || !variable.getTensorType().getElementType().isF32() ||
          !llvm::all_of(all, [&](train::ReadOp read) { return isUsedIn(low, read.getResult()); }))
        continue;
      auto file = cast<train::FileSourceAttr>(*variable.getSource());
      variable.setType(variable.getTensorType().clone(low));
      variable.setSourceAttr(
          train::FileSourceAttr::get(&getContext(), file.getPath(), file.getOffset(), file.getLength(), ""));
      for (train::ReadOp read : all)
        narrowRead(read, low);
    }
  }
};

} // namespace
