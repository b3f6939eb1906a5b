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

/// The operands of any command with what is done to them.
struct Operands {
  OperandRange buffers;
  ArrayRef<int32_t> accesses;
};
Operands operandsOf(Operation *command) {
  if (auto kernel = dyn_cast<plan::KernelOp>(command))
    return {kernel.getBuffers(), kernel.getAccesses()};
  if (auto fill = dyn_cast<plan::FillOp>(command))
    return {fill.getBuffers(), fill.getAccesses()};
  if (auto copy = dyn_cast<plan::CopyOp>(command))
    return {copy.getBuffers(), copy.getAccesses()};
  if (auto collective = dyn_cast<plan::CollectiveOp>(command))
    return {collective.getBuffers(), collective.getAccesses()};
  if (auto send = dyn_cast<plan::SendOp>(command))
    return {send.getBuffers(), send.getAccesses()};
  if (auto receive = dyn_cast<plan::ReceiveOp>(command))
    return {receive.getBuffers(), receive.getAccesses()};
  auto feed = cast<plan::FeedOp>(command);
  return {feed.getBuffers(), feed.getAccesses()};
}

struct VerifyPlanForm : ds::impl::VerifyPlanFormBase<VerifyPlanForm> {
  void runOnOperation() override {
    for (Operation &op : *getOperation().getBody()) {
      const bool allowed = isa<train::VariableOp, dist::MeshOp, dist::BucketOp, dist::PipelineOp, plan::CommunicatorOp,
                               plan::ChannelOp, plan::InputOp, plan::RoleOp>(op) ||
                           (isa<ModuleOp>(op) && cast<ModuleOp>(op).getSymName() == referenceModule);
      if (!allowed) {
        op.emitOpError("is left over; ds-lower-to-plan should have lowered it");
        return signalPassFailure();
      }
    }
    if (failed(verifyFeeds()))
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
    if (end > int64_t(*arena.getBytes()))
      return buffer.emitOpError() << "\"" << buffer.getName() << "\" ends at " << end << ", past its arena's "
                                  << *arena.getBytes() << " bytes";
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
      for (Operation &command : routine.getBody().front()) {
        auto [buffers, accesses] = operandsOf(&command);
        for (auto [buffer, number] : llvm::zip(buffers, accesses)) {
          auto owner = cast<plan::BufferOp>(buffer.getDefiningOp());
          const auto access = plan::Access(number);
          const bool reads = access == plan::Access::Read || access == plan::Access::ReadWrite;
          auto &known = owner.getScope() == plan::Scope::Call ? writtenHere : written;
          if (reads && owner.getScope() != plan::Scope::Plan && !known.contains(owner))
            return command.emitOpError() << "reads \"" << owner.getName() << "\", which nothing has written";
          if (access != plan::Access::Scratch)
            known.insert(owner);
        }
      }
    }
    return success();
  }
};

} // namespace
