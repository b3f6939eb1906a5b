//===- VerifyDistForm.cpp - check that every value is kept before it is taken -===//
#include "compiler/passes/Passes.h"
#include "dialects/Dist/Dist.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include "llvm/ADT/SetVector.h"

namespace ds {
#define GEN_PASS_DEF_VERIFYDISTFORM
#include "compiler/passes/Passes.h.inc"
} // namespace ds

using namespace mlir;
using namespace ds;

namespace {

/// What a fragment takes and provides; the same for every call.
struct Effects {
  SmallVector<dist::TakeOp> takes;
  llvm::SetVector<StringAttr> provides;
};

struct VerifyDistForm : ds::impl::VerifyDistFormBase<VerifyDistForm> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    for (auto function : module.getOps<func::FuncOp>()) {
      function.emitError("is left over; ds-outline-fragments should have cut it into fragments");
      return signalPassFailure();
    }
    llvm::DenseMap<StringAttr, Effects> effects; // looked up, never iterated
    for (auto fragment : module.getOps<dist::FragmentOp>())
      effects[fragment.getSymNameAttr()] = effectsOf(fragment);
    for (auto role : module.getOps<dist::RoleOp>())
      for (auto program : role.getOps<dist::ProgramOp>())
        if (failed(follow(program, effects)))
          return signalPassFailure();
  }

  static Effects effectsOf(dist::FragmentOp fragment) {
    Effects effects;
    for (Operation &op : fragment.getBody().front()) {
      if (auto take = dyn_cast<dist::TakeOp>(op))
        effects.takes.push_back(take);
      else if (auto keep = dyn_cast<dist::KeepOp>(op))
        effects.provides.insert(keep.getValueAttr().getAttr());
      else if (auto feed = dyn_cast<dist::FeedOp>(op))
        effects.provides.insert(feed.getValueAttr().getAttr());
    }
    return effects;
  }

  static LogicalResult follow(dist::ProgramOp program, const llvm::DenseMap<StringAttr, Effects> &effects) {
    llvm::DenseMap<int64_t, llvm::DenseSet<StringAttr>> present; // by micro-batch
    for (auto call : program.getOps<dist::CallOp>()) {
      const Effects &own = effects.at(call.getFragmentAttr().getAttr());
      auto &values = present[call.getMicrobatch()];
      for (dist::TakeOp take : own.takes)
        if (!values.contains(take.getValueAttr().getAttr())) {
          InFlightDiagnostic error = call.emitOpError() << "takes " << take.getValueAttr() << " of micro-batch "
                                                        << call.getMicrobatch() << ", which no earlier call kept";
          error.attachNote(take.getLoc()) << "taken here";
          return error;
        }
      for (StringAttr name : own.provides)
        values.insert(name);
    }
    return success();
  }
};

} // namespace
