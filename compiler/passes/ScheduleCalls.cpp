//===- ScheduleCalls.cpp - list the calls of every role ---------------------===//
#include "compiler/passes/Passes.h"
#include "dialects/Dist/Dist.h"

#include "mlir/IR/Builders.h"

namespace ds {
#define GEN_PASS_DEF_SCHEDULECALLS
#include "compiler/passes/Passes.h.inc"
} // namespace ds

using namespace mlir;
using namespace ds;

namespace {

struct ScheduleCalls : ds::impl::ScheduleCallsBase<ScheduleCalls> {
  using ScheduleCallsBase::ScheduleCallsBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    SymbolTable symbols(module);
    for (StringRef name : {"feed", "forward", "backward", "update", "evaluate"})
      if (!symbols.lookup<dist::FragmentOp>(name)) {
        module.emitError() << "has no fragment @" << name << "; ds-outline-fragments makes it";
        return signalPassFailure();
      }
    if (dataParallel < 1) {
      module.emitError() << "data-parallel is " << dataParallel.getValue() << "; it must be at least 1";
      return signalPassFailure();
    }
    if (microbatches < 1) {
      module.emitError() << "microbatches is " << microbatches.getValue() << "; it must be at least 1";
      return signalPassFailure();
    }
    builder_ = OpBuilder::atBlockEnd(module.getBody());
    dist::MeshOp::create(builder_, module.getLoc(), "mesh", builder_.getStrArrayAttr({"pipe", "data", "tensor"}),
                         ArrayRef<int64_t>{1, dataParallel, 1});
    auto role = dist::RoleOp::create(builder_, module.getLoc(), "main", ArrayRef<int64_t>{0, dataParallel - 1});
    builder_.setInsertionPointToStart(&role.getBody().emplaceBlock());
    scheduleStep(module.getLoc());
    startProgram(module.getLoc(), "evaluate");
    call("feed", 0);
    call("evaluate", 0);
  }

private:
  /// Feeds run one micro-batch ahead of the compute that reads them.
  void scheduleStep(Location location) {
    OpBuilder::InsertionGuard guard(builder_);
    startProgram(location, "step");
    call("feed", 0);
    for (int64_t m = 0; m < microbatches; ++m) {
      if (m + 1 < microbatches)
        call("feed", m + 1);
      call("forward", m);
      call("backward", m);
    }
    call("update", microbatches - 1);
  }

  void startProgram(Location location, StringRef name) {
    auto program = dist::ProgramOp::create(builder_, location, name);
    builder_.setInsertionPointToStart(&program.getBody().emplaceBlock());
  }

  void call(StringRef fragment, int64_t microbatch) {
    dist::CallOp::create(builder_, builder_.getUnknownLoc(), fragment, microbatch);
  }

  OpBuilder builder_{static_cast<MLIRContext *>(nullptr)};
};

} // namespace
