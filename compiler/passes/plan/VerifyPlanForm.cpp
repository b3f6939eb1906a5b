//===- VerifyPlanForm.cpp - check that nothing is left to decide -------------===//
#include "compiler/analysis/TrainStep.h"
#include "compiler/passes/plan/Passes.h"
#include "dialects/Dist/Dist.h"
#include "dialects/Plan/Plan.h"
#include "dialects/Train/Train.h"

namespace ds {
#define GEN_PASS_DEF_VERIFYPLANFORM
#include "compiler/passes/plan/Passes.h.inc"
} // namespace ds

using namespace mlir;
using namespace ds;

namespace {

struct VerifyPlanForm : ds::impl::VerifyPlanFormBase<VerifyPlanForm> {
  void runOnOperation() override {
    for (Operation &op : *getOperation().getBody()) {
      const bool allowed = isa<train::VariableOp, dist::MeshOp, dist::BucketOp, dist::PipelineOp, plan::CommunicatorOp,
                               plan::ChannelOp, plan::CodeOp, plan::InputOp, plan::RoleOp>(op) ||
                           (isa<ModuleOp>(op) && cast<ModuleOp>(op).getSymName() == referenceModule);
      if (!allowed) {
        op.emitOpError("is left over; ds-allocate-buffers should have lowered it");
        return signalPassFailure();
      }
    }
    if (failed(verifyFeeds()))
      return signalPassFailure();
    WalkResult walked = getOperation().walk([](plan::AwaitOp await) {
      await.emitOpError("is left over; ds-order-queues should have made it an event");
      return WalkResult::interrupt();
    });
    if (walked.wasInterrupted())
      return signalPassFailure();
    for (auto role : getOperation().getOps<plan::RoleOp>()) {
      for (auto buffer : role.getOps<plan::BufferOp>())
        if (failed(verifyPlace(buffer)))
          return signalPassFailure();
      for (auto program : role.getOps<plan::ProgramOp>())
        if (failed(verifyOrder(program)))
          return signalPassFailure();
    }
  }

  LogicalResult verifyFeeds() {
    llvm::DenseSet<StringAttr> inputs; // looked up
    for (auto input : getOperation().getOps<plan::InputOp>())
      if (!inputs.insert(input.getNameAttr()).second)
        return input.emitOpError() << "\"" << input.getName() << "\" stands twice";
    const WalkResult result = getOperation().walk([&](plan::FeedOp feed) {
      if (inputs.contains(feed.getInputAttr()))
        return WalkResult::advance();
      feed.emitOpError() << "feeds \"" << feed.getInput() << "\", which no plan.input declares";
      return WalkResult::interrupt();
    });
    return failure(result.wasInterrupted());
  }

  static LogicalResult verifyPlace(plan::BufferOp buffer) {
    auto arena = SymbolTable::lookupNearestSymbolFrom<plan::ArenaOp>(buffer, buffer.getArenaAttr());
    if (!buffer.getOffset() || !arena.getBytes())
      return buffer.emitOpError() << "\"" << buffer.getName() << "\" has no offset; ds-assign-offsets gives it one";
    int64_t last = *buffer.getOffset();
    for (int64_t offset : buffer.getSlotOffsets().value_or(ArrayRef<int64_t>()))
      last = std::max(last, offset);
    const int64_t end = last + buffer.getBytes();
    if (end > int64_t(*arena.getBytes())) {
      InFlightDiagnostic error = buffer.emitOpError();
      error << "\"" << buffer.getName() << "\" ends at " << end << ", past its arena's " << *arena.getBytes()
            << " bytes";
      error.attachNote(arena.getLoc()) << "the arena";
      return error;
    }
    return success();
  }

  /// Follows the calls: what is read was written before, by this call for scope call, in this run for the others. What
  /// was written stays so, so the first call of a routine speaks for the others.
  static LogicalResult verifyOrder(plan::ProgramOp program) {
    const SymbolTable symbols(program->getParentOp());
    llvm::DenseSet<Operation *> written, followed;
    for (auto call : program.getOps<plan::CallOp>()) {
      auto routine = symbols.lookup<plan::RoutineOp>(call.getRoutine());
      if (!followed.insert(routine).second)
        continue;
      llvm::DenseSet<Operation *> writtenHere;
      for (auto command : routine.getOps<plan::CommandOpInterface>())
        if (failed(verifyReads(command, writtenHere, written)))
          return failure();
    }
    return success();
  }

  static LogicalResult verifyReads(plan::CommandOpInterface command, llvm::DenseSet<Operation *> &writtenHere,
                                   llvm::DenseSet<Operation *> &written) {
    for (auto [index, buffer] : llvm::enumerate(command.getBuffers())) {
      auto owner = buffer.getDefiningOp<plan::BufferOp>();
      auto &known = owner.getScope() == plan::Scope::Call ? writtenHere : written;
      if (command.reads(index) && owner.getScope() != plan::Scope::Plan && !known.contains(owner)) {
        InFlightDiagnostic error = command->emitOpError()
                                   << "reads \"" << owner.getName() << "\", which nothing has written";
        error.attachNote(owner.getLoc()) << "the buffer";
        return error;
      }
      if (command.getAccess(index) != plan::Access::Scratch)
        known.insert(owner);
    }
    return success();
  }
};

} // namespace
