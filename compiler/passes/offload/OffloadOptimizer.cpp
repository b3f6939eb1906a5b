//===- OffloadOptimizer.cpp - optimizer state lives on the host, and is updated there ---===//
//
// 1. Buffers of moments move to the host's arena; what is small, or named by another command than a kernel, stays.
// 2. A kernel that names one runs on the host: what it reads of device memory is copied to the host before it, what it
//    writes there is copied back behind it. Scalars that many updates read are copied once.
// Ren et al., ZeRO-Offload, USENIX ATC 2021. Gradients leave and parameters come back; moments never move.
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
  StateMove(plan::RoleOp role, int64_t leastBytes)
      : role_(role), members_(role.getContext()), leastBytes_(leastBytes) {}

  void run() {
    for (auto buffer : role_.getOps<plan::BufferOp>())
      if (isOffloaded(buffer))
        onHost_.insert(buffer);
    if (onHost_.empty())
      return;
    makeHostArena();
    for (Operation *buffer : onHost_)
      cast<plan::BufferOp>(buffer).setArena("host");
    for (auto routine : role_.getOps<plan::RoutineOp>())
      moveKernels(routine);
  }

private:
  bool isOffloaded(plan::BufferOp buffer) const {
    return buffer.getScope() == plan::Scope::Plan && buffer.getCategory() == plan::Category::Optimizer &&
           int64_t(buffer.getBytes()) >= leastBytes_ && !buffer->use_empty() &&
           llvm::all_of(buffer->getUsers(), llvm::IsaPred<plan::KernelOp>);
  }

  /// Behind that of device memory, unless activations have brought it.
  void makeHostArena() {
    auto arenas = llvm::to_vector(role_.getOps<plan::ArenaOp>());
    if (llvm::any_of(arenas, [](plan::ArenaOp arena) { return arena.getSpace() == plan::MemorySpace::Host; }))
      return;
    members_.setInsertionPointAfter(arenas.front());
    plan::ArenaOp::create(members_, role_.getLoc(), "host", plan::MemorySpace::Host, IntegerAttr(), IntegerAttr());
  }

  void moveKernels(plan::RoutineOp routine) {
    members_.setInsertionPoint(routine);
    copies_.clear();
    for (auto command : llvm::to_vector(routine.getOps<plan::CommandOpInterface>())) {
      SmallVector<Value> written;
      for (auto [index, buffer] : llvm::enumerate(command.getBuffers()))
        if (command.writes(index))
          written.push_back(buffer);
      if (isa<plan::KernelOp>(command) && llvm::any_of(command.getBuffers(), isOnHost))
        moveKernel(command);
      llvm::erase_if(copies_, [&](const Copied &copied) { return llvm::is_contained(written, copied.device); });
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
    const Value device = kernel.getBuffers()[index];
    const RankedTensorType type = kernel.getTensor(index);
    if (kernel.getAccess(index) == plan::Access::Read)
      for (const Copied &copied : copies_)
        if (copied.device == device && copied.offset == kernel.getByteOffsets()[index] && copied.type == type)
          return copied.host;
    auto name = device.getDefiningOp<plan::BufferOp>().getName();
    Value host = plan::BufferOp::create(members_, kernel->getLoc(), name, plan::MemorySpace::Host,
                                        plan::tensorBytes(type), plan::Scope::Call, plan::Category::Communication);
    OpBuilder before(kernel), after(kernel->getContext());
    after.setInsertionPointAfter(kernel);
    if (kernel.reads(index))
      copy(before, kernel, index, device, host);
    if (kernel.writes(index) && kernel.getAccess(index) != plan::Access::Scratch)
      copy(after, kernel, index, host, device);
    if (kernel.getAccess(index) == plan::Access::Read && type.getRank() == 0)
      copies_.push_back({device, kernel.getByteOffsets()[index], type, host});
    return host;
  }

  /// Of operand `index` of a kernel, whose place in device memory it names.
  static void copy(OpBuilder &builder, plan::CommandOpInterface kernel, unsigned index, Value from, Value to) {
    const bool leaves = from == kernel.getBuffers()[index];
    const auto atDevice = [&](int64_t value) {
      return leaves ? SmallVector<int64_t>{value, 0} : SmallVector<int64_t>{0, value};
    };
    auto made = plan::CopyOp::create(
        builder, kernel->getLoc(), ValueRange{from, to},
        builder.getDenseI32ArrayAttr({int32_t(plan::Access::Read), int32_t(plan::Access::Write)}),
        builder.getTypeArrayAttr({kernel.getTensor(index), kernel.getTensor(index)}),
        builder.getDenseI64ArrayAttr(atDevice(kernel.getByteOffsets()[index])), kernel.getQueueAttr(),
        /*waits=*/builder.getArrayAttr({}), /*delays=*/builder.getDenseI64ArrayAttr({}),
        /*signals=*/builder.getArrayAttr({}), /*reference=*/builder.getDenseI64ArrayAttr({}),
        /*rank_strides=*/builder.getDenseI64ArrayAttr({}), /*communicator=*/FlatSymbolRefAttr());
    if (kernel.getRankStride(index) == 0)
      return;
    made.setRankStrides(atDevice(kernel.getRankStride(index)));
    made.setCommunicatorAttr(kernel.getCommunicatorAttr());
  }

  static bool isOnHost(Value buffer) { return buffer.getDefiningOp<plan::BufferOp>().getArena() == "host"; }

  /// A scalar that is on the host as it is on the device.
  struct Copied {
    Value device;
    int64_t offset;
    RankedTensorType type;
    Value host;
  };

  plan::RoleOp role_;
  OpBuilder members_; // where buffers go
  const int64_t leastBytes_;
  llvm::SetVector<Operation *> onHost_; // buffers
  SmallVector<Copied> copies_;          // of one routine
};

struct OffloadOptimizer : ds::impl::OffloadOptimizerBase<OffloadOptimizer> {
  using OffloadOptimizerBase::OffloadOptimizerBase;

  void runOnOperation() override {
    if (leastBytes < 0) {
      getOperation().emitError() << "least-bytes is " << leastBytes.getValue() << "; it must not be negative";
      return signalPassFailure();
    }
    for (auto role : getOperation().getOps<plan::RoleOp>())
      StateMove(role, leastBytes).run();
  }
};

} // namespace
