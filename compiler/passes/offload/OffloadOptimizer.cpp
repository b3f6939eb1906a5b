//===- OffloadOptimizer.cpp - optimizer state lives elsewhere, and the host updates it ---===//
//
// 1. Buffers of moments move to the arena of host memory or NVMe; what is small, or named by another command than a
//    kernel, stays.
// 2. A kernel that names one runs on the host: what it reads elsewhere is copied to the host before it, what it writes
//    there is copied back behind it. Scalars that many updates read are copied once.
// Ren et al., ZeRO-Offload, USENIX ATC 2021; Rajbhandari et al., ZeRO-Infinity, SC 2021. Gradients leave and parameters
// come back; moments in host memory never move.
//
//===----------------------------------------------------------------------===//
#include "compiler/passes/offload/Passes.h"
#include "dialects/Plan/Plan.h"

#include "mlir/IR/Builders.h"

#include "llvm/ADT/SetVector.h"

namespace ds {
#define GEN_PASS_DEF_OFFLOADOPTIMIZER
#include "compiler/passes/offload/Passes.h.inc"
} // namespace ds

using namespace mlir;
using namespace ds;

namespace {

/// Moves the optimizer state of one role.
class StateMove {
public:
  StateMove(plan::RoleOp role, plan::MemorySpace space, int64_t leastBytes)
      : role_(role), members_(role.getContext()), space_(space), leastBytes_(leastBytes) {}

  void run() {
    for (auto buffer : role_.getOps<plan::BufferOp>())
      if (isOffloaded(buffer))
        moved_.insert(buffer);
    if (moved_.empty())
      return;
    makeArena(plan::MemorySpace::Host);
    makeArena(space_);
    for (Operation *buffer : moved_)
      cast<plan::BufferOp>(buffer).setArena(stringifyMemorySpace(space_));
    for (auto routine : role_.getOps<plan::RoutineOp>())
      moveKernels(routine);
  }

private:
  bool isOffloaded(plan::BufferOp buffer) const {
    return buffer.getScope() == plan::Scope::Plan && buffer.getCategory() == plan::Category::Optimizer &&
           int64_t(buffer.getBytes()) >= leastBytes_ && !buffer->use_empty() &&
           llvm::all_of(buffer->getUsers(), llvm::IsaPred<plan::KernelOp>);
  }

  /// Behind those of the spaces before it, unless activations have brought it.
  void makeArena(plan::MemorySpace space) {
    for (auto arena : role_.getOps<plan::ArenaOp>()) {
      if (arena.getSpace() == space)
        return;
      if (arena.getSpace() < space)
        members_.setInsertionPointAfter(arena);
    }
    plan::ArenaOp::create(members_, role_.getLoc(), stringifyMemorySpace(space), space, IntegerAttr(), IntegerAttr());
  }

  void moveKernels(plan::RoutineOp routine) {
    members_.setInsertionPoint(routine);
    copies_.clear();
    for (auto command : llvm::to_vector(routine.getOps<plan::CommandOpInterface>())) {
      SmallVector<Value> written;
      for (auto [index, buffer] : llvm::enumerate(command.getBuffers()))
        if (command.writes(index))
          written.push_back(buffer);
      if (isa<plan::KernelOp>(command) && llvm::any_of(command.getBuffers(), [&](Value buffer) {
            return moved_.contains(buffer.getDefiningOp());
          }))
        moveKernel(command);
      llvm::erase_if(copies_, [&](const Copied &copied) { return llvm::is_contained(written, copied.away); });
    }
  }

  void moveKernel(plan::CommandOpInterface kernel) {
    SmallVector<Value> buffers;
    SmallVector<int64_t> offsets, strides;
    for (auto [index, buffer] : llvm::enumerate(kernel.getBuffers())) {
      const bool stays = isOnHost(buffer);
      buffers.push_back(stays ? buffer : bring(kernel, unsigned(index)));
      offsets.push_back(stays ? kernel.getByteOffsets()[index] : 0);
      strides.push_back(stays ? kernel.getRankStride(unsigned(index)) : 0);
    }
    kernel.getBuffersMutable().assign(buffers);
    kernel.setByteOffsets(offsets);
    if (!llvm::all_of(strides, [](int64_t stride) { return stride == 0; }))
      return kernel.setRankStrides(strides);
    kernel.setRankStrides({});
    kernel.setCommunicatorAttr({});
  }

  /// A buffer on the host for one operand of a kernel, and the copies around the kernel that it takes.
  Value bring(plan::CommandOpInterface kernel, unsigned index) {
    const Value away = kernel.getBuffers()[index];
    const RankedTensorType type = kernel.getTensor(index);
    if (kernel.getAccess(index) == plan::Access::Read)
      for (const Copied &copied : copies_)
        if (copied.away == away && copied.offset == kernel.getByteOffsets()[index] && copied.type == type)
          return copied.host;
    auto name = away.getDefiningOp<plan::BufferOp>().getName();
    Value host = plan::BufferOp::create(members_, kernel->getLoc(), name, plan::MemorySpace::Host,
                                        plan::tensorBytes(type), plan::Scope::Call, plan::Category::Communication);
    OpBuilder before(kernel), after(kernel->getContext());
    after.setInsertionPointAfter(kernel);
    if (kernel.reads(index))
      copy(before, kernel, index, away, host);
    if (kernel.writes(index) && kernel.getAccess(index) != plan::Access::Scratch)
      copy(after, kernel, index, host, away);
    if (kernel.getAccess(index) == plan::Access::Read && type.getRank() == 0)
      copies_.push_back({away, kernel.getByteOffsets()[index], type, host});
    return host;
  }

  /// Of operand `index` of a kernel, whose place elsewhere it names.
  static void copy(OpBuilder &builder, plan::CommandOpInterface kernel, unsigned index, Value from, Value to) {
    const bool leaves = from == kernel.getBuffers()[index];
    const auto atOther = [&](int64_t value) {
      return leaves ? SmallVector<int64_t>{value, 0} : SmallVector<int64_t>{0, value};
    };
    auto made = plan::CopyOp::create(
        builder, kernel->getLoc(), ValueRange{from, to},
        builder.getDenseI32ArrayAttr({int32_t(plan::Access::Read), int32_t(plan::Access::Write)}),
        builder.getTypeArrayAttr({kernel.getTensor(index), kernel.getTensor(index)}),
        builder.getDenseI64ArrayAttr(atOther(kernel.getByteOffsets()[index])), kernel.getQueueAttr(),
        /*waits=*/builder.getArrayAttr({}), /*delays=*/builder.getDenseI64ArrayAttr({}),
        /*signals=*/builder.getArrayAttr({}), /*reference=*/builder.getDenseI64ArrayAttr({}),
        /*rank_strides=*/builder.getDenseI64ArrayAttr({}), /*communicator=*/FlatSymbolRefAttr());
    if (kernel.getRankStride(index) == 0)
      return;
    made.setRankStrides(atOther(kernel.getRankStride(index)));
    made.setCommunicatorAttr(kernel.getCommunicatorAttr());
  }

  static bool isOnHost(Value buffer) { return buffer.getDefiningOp<plan::BufferOp>().getArena() == "host"; }

  /// A scalar that is on the host as it is elsewhere.
  struct Copied {
    Value away;
    int64_t offset;
    RankedTensorType type;
    Value host;
  };

  plan::RoleOp role_;
  OpBuilder members_; // where buffers go
  const plan::MemorySpace space_;
  const int64_t leastBytes_;
  llvm::SetVector<Operation *> moved_; // buffers
  SmallVector<Copied> copies_;          // of one routine
};

struct OffloadOptimizer : ds::impl::OffloadOptimizerBase<OffloadOptimizer> {
  using OffloadOptimizerBase::OffloadOptimizerBase;

  void runOnOperation() override {
    if (leastBytes < 0) {
      getOperation().emitError() << "least-bytes is " << leastBytes.getValue() << "; it must not be negative";
      return signalPassFailure();
    }
    const std::optional<plan::MemorySpace> where = plan::symbolizeMemorySpace(space);
    if (!where || where == plan::MemorySpace::Device) {
      getOperation().emitError() << "space is " << space.getValue() << "; it must be host or nvme";
      return signalPassFailure();
    }
    for (auto role : getOperation().getOps<plan::RoleOp>())
      StateMove(role, *where, leastBytes).run();
  }
};

} // namespace
