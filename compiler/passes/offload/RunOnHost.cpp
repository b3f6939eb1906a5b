//===- RunOnHost.cpp - kernels run where what they use lies ------------------===//
//
// A kernel that names a buffer of host memory or NVMe runs on the host: what it reads elsewhere is copied to the host
// before it, what it writes there is copied back behind it. Scalars that many updates read are copied once.
//
//===----------------------------------------------------------------------===//
#include "compiler/passes/offload/OperandCopies.h"
#include "compiler/passes/offload/Passes.h"
#include "compiler/passes/offload/StepStart.h"
#include "dialects/Plan/Plan.h"

#include "mlir/IR/Builders.h"

namespace ds {
#define GEN_PASS_DEF_RUNONHOST
#include "compiler/passes/offload/Passes.h.inc"
} // namespace ds

using namespace mlir;
using namespace ds;

namespace {

/// Moves kernels of one role to the host.
class KernelMove {
public:
  explicit KernelMove(plan::RoleOp role) : role_(role), members_(role.getContext()), groups_(role) {}

  void run() {
    for (auto routine : role_.getOps<plan::RoutineOp>())
      moveKernels(routine);
  }

private:
  void moveKernels(plan::RoutineOp routine) {
    members_.setInsertionPoint(routine);
    copies_.clear();
    before_ = routine.getBody().front().empty() ? nullptr : &routine.getBody().front().front();
    for (auto command : llvm::to_vector(routine.getOps<plan::CommandOpInterface>())) {
      SmallVector<Value> written;
      for (auto [index, buffer] : llvm::enumerate(command.getBuffers()))
        if (command.writes(index))
          written.push_back(buffer);
      const bool updates = isUpdate(command); // its parameter may be elsewhere then
      if (isa<plan::KernelOp>(command) && llvm::any_of(command.getBuffers(), isAway))
        moveKernel(command);
      if (updates)
        before_ = command;
      llvm::erase_if(copies_, [&](const Copied &copied) { return llvm::is_contained(written, copied.away); });
    }
  }

  void moveKernel(plan::CommandOpInterface kernel) {
    SmallVector<Value> buffers;
    for (auto [index, buffer] : llvm::enumerate(kernel.getBuffers()))
      buffers.push_back(spaceOf(buffer) == plan::MemorySpace::Host
                            ? buffer
                            : bring(kernel, unsigned(index), samePlace(kernel, unsigned(index), buffers)));
    setBuffers(kernel, buffers);
  }

  /// State, a parameter, or a gradient.
  static bool isAway(Value buffer) { return spaceOf(buffer) != plan::MemorySpace::Device; }

  /// The buffer on the host of an operand before this one that lies in the same place; null where none does.
  static Value samePlace(plan::CommandOpInterface kernel, unsigned index, ArrayRef<Value> before) {
    for (auto [other, host] : llvm::enumerate(before))
      if (kernel.getBuffers()[other] == kernel.getBuffers()[index] &&
          kernel.getByteRange(unsigned(other)) == kernel.getByteRange(index))
        return host;
    return {};
  }

  /// A buffer on the host for one operand of a kernel, and the copies around the kernel that it takes. What is written
  /// where another operand lies has that one's.
  Value bring(plan::CommandOpInterface kernel, unsigned index, Value same) {
    const Value away = kernel.getBuffers()[index];
    const RankedTensorType type = kernel.getTensor(index);
    if (kernel.getAccess(index) == plan::Access::Read)
      for (const Copied &copied : copies_)
        if (copied.away == away && copied.offset == kernel.getByteOffsets()[index] && copied.type == type)
          return copied.host;
    const Value host = same ? same : makeBuffer(members_, kernel, index, plan::MemorySpace::Host);
    OpBuilder before(leavesBefore(kernel, index)), after(kernel->getContext());
    // Beside the layer whose gradient the update waits for.
    if (plan::RoutineOp start = groups_.startBefore(cast<plan::RoutineOp>(kernel->getParentOp()));
        start && spaceOf(away) == plan::MemorySpace::Nvme && !lastWriter(kernel, index)) {
      before.setInsertionPointToEnd(&start.getBody().front());
      if (start->isBeforeInBlock(host.getDefiningOp()))
        host.getDefiningOp()->moveBefore(start);
    }
    after.setInsertionPointAfter(kernel);
    if (kernel.reads(index))
      copyOperand(before, kernel, index, away, host);
    if (kernel.writes(index) && kernel.getAccess(index) != plan::Access::Scratch)
      copyOperand(after, kernel, index, host, away);
    if (kernel.getAccess(index) == plan::Access::Read && type.getRank() == 0)
      copies_.push_back({away, kernel.getByteOffsets()[index], type, host});
    return host;
  }

  /// What a kernel reads leaves as soon as it is written, and what an update takes beside, while the one before it
  /// waits. In the routine of the update turns say when (ds-order-queues).
  Operation *leavesBefore(plan::CommandOpInterface kernel, unsigned index) const {
    if (cast<plan::RoutineOp>(kernel->getParentOp()).getPhase() == plan::Phase::Update || !kernel.reads(index))
      return kernel;
    if (Operation *writer = lastWriter(kernel, index))
      return awaitOf(cast<plan::CommandOpInterface>(writer))->getNextNode();
    return isUpdate(kernel) ? before_ : kernel.getOperation();
  }

  /// A scalar that is on the host as it is elsewhere.
  struct Copied {
    Value away;
    int64_t offset;
    RankedTensorType type;
    Value host;
  };

  plan::RoleOp role_;
  OpBuilder members_; // where buffers go
  LayerGroups groups_;
  // Of one routine.
  SmallVector<Copied> copies_;
  Operation *before_ = nullptr; // its first op or the last update so far
};

struct RunOnHost : ds::impl::RunOnHostBase<RunOnHost> {
  using RunOnHostBase::RunOnHostBase;

  void runOnOperation() override {
    for (auto role : getOperation().getOps<plan::RoleOp>())
      KernelMove(role).run();
  }
};

} // namespace
