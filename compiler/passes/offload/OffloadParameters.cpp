//===- OffloadParameters.cpp - parameters lie elsewhere until a command reads them ---===//
//
// 1. Buffers of weights move to the arena of host memory or NVMe; what is small, or named by another command than a
//    kernel or a collective, stays.
// 2. A command that names one uses a buffer in device memory: a copy brings what it reads, another takes back what it
//    writes. An update that the host makes anyway is left to ds-offload-optimizer, which finds its parameter there.
// 3. What is read comes while the parameter before it is used: one is in use, one is on its way. So device memory holds
//    the parameters of two commands.
// Rajbhandari et al., ZeRO-Infinity, SC 2021. Under ZeRO-3 a rank brings its slice, in front of the gather.
//
//===----------------------------------------------------------------------===//
#include "compiler/passes/offload/OperandCopies.h"
#include "compiler/passes/offload/Passes.h"
#include "dialects/Plan/Plan.h"

#include "mlir/IR/Builders.h"

namespace ds {
#define GEN_PASS_DEF_OFFLOADPARAMETERS
#include "compiler/passes/offload/Passes.h.inc"
} // namespace ds

using namespace mlir;
using namespace ds;

namespace {

/// Moves the parameters of one role.
class ParameterMove {
public:
  ParameterMove(plan::RoleOp role, plan::MemorySpace space, int64_t leastBytes, bool hostUpdates)
      : role_(role), members_(role.getContext()), space_(space), leastBytes_(leastBytes), hostUpdates_(hostUpdates) {}

  void run() {
    moved_ = moveBuffers(role_, space_, [&](plan::BufferOp buffer) {
      return isStateOf(buffer, plan::Category::Weights, leastBytes_, llvm::IsaPred<plan::KernelOp, plan::CollectiveOp>);
    });
    for (auto routine : role_.getOps<plan::RoutineOp>())
      bringParameters(routine);
  }

private:
  bool isMoved(Value buffer) const { return moved_.contains(buffer.getDefiningOp()); }

  /// Of a kernel that reads and writes a parameter.
  bool isUpdate(plan::CommandOpInterface command) const {
    for (auto [index, buffer] : llvm::enumerate(command.getBuffers()))
      if (isMoved(buffer) && command.getAccess(unsigned(index)) == plan::Access::ReadWrite)
        return isa<plan::KernelOp>(command.getOperation());
    return false;
  }

  void bringParameters(plan::RoutineOp routine) {
    members_.setInsertionPoint(routine);
    llvm::DenseSet<Value> written; // in this routine: what is read of it must be what is written
    for (auto command : routine.getOps<plan::CommandOpInterface>())
      for (auto [index, buffer] : llvm::enumerate(command.getBuffers()))
        if (isMoved(buffer) && command.writes(unsigned(index)))
          written.insert(buffer);
    Operation *before = &routine.getBody().front().front(), *last = before; // the users of the two parameters before
    for (auto command : llvm::to_vector(routine.getOps<plan::CommandOpInterface>())) {
      if (llvm::none_of(command.getBuffers(), [&](Value buffer) { return isMoved(buffer); }) ||
          (hostUpdates_ && isUpdate(command)))
        continue;
      const bool isKnown = llvm::none_of(command.getBuffers(), [&](Value buffer) { return written.contains(buffer); });
      bring(command, isKnown ? before : command.getOperation(), isKnown ? last : command.getOperation());
      before = last;
      last = command;
    }
  }

  /// Copies from a file are issued in front of `read`, those from host memory in front of `come`.
  void bring(plan::CommandOpInterface command, Operation *read, Operation *come) {
    SmallVector<Value> buffers = llvm::to_vector(command.getBuffers());
    for (unsigned index = 0; index < buffers.size(); ++index)
      if (isMoved(buffers[index]))
        buffers[index] = bring(command, index, read, come);
    setBuffers(command, buffers);
  }

  Value bring(plan::CommandOpInterface command, unsigned index, Operation *read, Operation *come) {
    const Value away = command.getBuffers()[index],
                near = makeBuffer(members_, command, index, plan::MemorySpace::Device);
    const Value there =
        space_ == plan::MemorySpace::Nvme ? makeBuffer(members_, command, index, plan::MemorySpace::Host) : Value();
    OpBuilder reads(read), comes(come), leaves(command->getContext());
    leaves.setInsertionPointAfter(awaitOf(command));
    if (command.reads(index) && there)
      copyOperand(reads, command, index, away, there);
    if (command.reads(index))
      there ? copyWhole(comes, command, index, there, near) : copyOperand(comes, command, index, away, near);
    if (command.writes(index) && there)
      copyWhole(leaves, command, index, near, there);
    if (command.writes(index))
      copyOperand(leaves, command, index, there ? there : near, away);
    return near;
  }

  plan::RoleOp role_;
  OpBuilder members_; // where buffers go
  const plan::MemorySpace space_;
  const int64_t leastBytes_;
  const bool hostUpdates_;
  llvm::SetVector<Operation *> moved_; // buffers
};

struct OffloadParameters : ds::impl::OffloadParametersBase<OffloadParameters> {
  using OffloadParametersBase::OffloadParametersBase;

  void runOnOperation() override {
    const FailureOr<plan::MemorySpace> where = spaceAway(getOperation(), space, leastBytes);
    if (failed(where))
      return signalPassFailure();
    for (auto role : getOperation().getOps<plan::RoleOp>())
      ParameterMove(role, *where, leastBytes, hostUpdates).run();
  }
};

} // namespace
