//===- OffloadParameters.cpp - parameters lie elsewhere until a command reads them ---===//
//
// 1. Buffers of weights move to the arena of host memory or NVMe; what is small, or named by another command than a
//    kernel or a collective, stays.
// 2. A command that names one uses a buffer in device memory: a copy brings what it reads, another takes back what it
//    writes. An update that the host makes anyway is left to ds-offload-optimizer, which finds its parameter there.
// 3. What is read comes while the parameter before it is used: one is in use, one is on its way. So device memory holds
//    the parameters of two commands.
// 4. With for-step, what is read comes once a run of a program and stays for it (StepParameters below).
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

/// Parameters that lie elsewhere between steps: each comes to a buffer of scope step in front of its first use in a
/// program, and the host updates it where it lies.
class StepParameters {
public:
  StepParameters(plan::RoleOp role, plan::MemorySpace space, int64_t leastBytes)
      : role_(role), members_(role.getContext()), space_(space), leastBytes_(leastBytes) {}

  void run() {
    const llvm::SetVector<Operation *> moved =
        moveBuffers(role_, space_, [&](plan::BufferOp buffer) { return isOffloaded(buffer); });
    if (moved.empty())
      return;
    members_.setInsertionPointAfter(moved.back());
    for (Operation *op : moved) {
      auto buffer = cast<plan::BufferOp>(op);
      near_[buffer] = plan::BufferOp::create(members_, buffer.getLoc(), buffer.getName(), plan::MemorySpace::Device,
                                             buffer.getBytes(), plan::Scope::Step, plan::Category::Weights);
    }
    for (auto routine : role_.getOps<plan::RoutineOp>())
      useNear(routine);
  }

private:
  bool isOffloaded(plan::BufferOp buffer) {
    if (buffer.getScope() != plan::Scope::Plan || buffer.getCategory() != plan::Category::Weights ||
        int64_t(buffer.getBytes()) < leastBytes_)
      return false;
    bool updated = false;
    for (Operation *user : buffer->getUsers()) {
      auto command = dyn_cast<plan::CommandOpInterface>(user);
      if (!command || !isa<plan::KernelOp, plan::CollectiveOp>(user))
        return false;
      updated |= isHostUpdate(command);
      for (auto [index, operand] : llvm::enumerate(command.getBuffers()))
        if (operand == buffer.getBuffer() && command.writes(unsigned(index)) && !isHostUpdate(command))
          return false;
    }
    return updated && comesOnce(buffer);
  }

  bool isHostUpdate(plan::CommandOpInterface command) const {
    return isa<plan::KernelOp>(command.getOperation()) && llvm::any_of(command.getBuffers(), [&](Value operand) {
             return isStateAway(operand.getDefiningOp<plan::BufferOp>(), leastBytes_);
           });
  }

  /// Notes the routine that uses a parameter first in each program; whether none is called twice.
  bool comesOnce(plan::BufferOp buffer) {
    llvm::DenseSet<Attribute> users; // routines; looked up
    for (Operation *user : buffer->getUsers())
      if (!isHostUpdate(cast<plan::CommandOpInterface>(user)))
        users.insert(cast<plan::RoutineOp>(user->getParentOp()).getSymNameAttr());
    for (auto program : role_.getOps<plan::ProgramOp>()) {
      Attribute first;
      int64_t calls = 0;
      for (auto call : program.getOps<plan::CallOp>()) {
        const Attribute routine = call.getRoutineAttr().getAttr();
        if (!first && users.contains(routine))
          first = routine;
        calls += routine == first;
      }
      if (calls > 1)
        return false;
      if (first)
        comesIn_[buffer].insert(first);
    }
    return true;
  }

  /// What is read of host memory is issued at once, in the order of its use; what lies in a file, while the parameter
  /// before it is used.
  void useNear(plan::RoutineOp routine) {
    members_.setInsertionPoint(routine);
    Operation *front = &routine.getBody().front().front(), *before = front, *last = front;
    llvm::DenseSet<Value> there;
    for (auto command : llvm::to_vector(routine.getOps<plan::CommandOpInterface>()))
      for (unsigned index = 0; index < command.getBuffers().size(); ++index) {
        const Value away = command.getBuffers()[index], near = near_.lookup(away.getDefiningOp());
        if (!near || isHostUpdate(command))
          continue;
        const bool comes = comesIn_.lookup(away.getDefiningOp()).contains(routine.getSymNameAttr());
        if (comes && there.insert(away).second) {
          bring(command, index, near, before, space_ == plan::MemorySpace::Host ? front : last);
          before = last;
          last = command;
        }
        TensorPlace place = placeOf(command, index);
        place.buffer = near;
        setOperand(command, index, place);
      }
  }

  void bring(plan::CommandOpInterface command, unsigned index, Value near, Operation *read, Operation *come) {
    auto away = command.getBuffers()[index].getDefiningOp<plan::BufferOp>();
    const RankedTensorType type = command.getTensor(index);
    const RankedTensorType all = type.clone({int64_t(away.getBytes()) * 8 / type.getElementTypeBitWidth()});
    TensorPlace from{away};
    OpBuilder reads(read), comes(come);
    if (space_ == plan::MemorySpace::Nvme) {
      from.buffer = plan::BufferOp::create(members_, away.getLoc(), away.getName(), plan::MemorySpace::Host,
                                           away.getBytes(), plan::Scope::Call, plan::Category::Communication);
      copyTensor(reads, command, all, {away}, from);
    }
    copyTensor(comes, command, all, from, {near});
  }

  plan::RoleOp role_;
  OpBuilder members_; // where buffers go
  const plan::MemorySpace space_;
  const int64_t leastBytes_;
  llvm::DenseMap<Operation *, Value> near_;                             // by buffer; looked up
  llvm::DenseMap<Operation *, llvm::SmallDenseSet<Attribute>> comesIn_; // routines, by buffer; looked up
};

struct OffloadParameters : ds::impl::OffloadParametersBase<OffloadParameters> {
  using OffloadParametersBase::OffloadParametersBase;

  void runOnOperation() override {
    const FailureOr<plan::MemorySpace> where = spaceAway(getOperation(), space, leastBytes);
    if (failed(where))
      return signalPassFailure();
    for (auto role : getOperation().getOps<plan::RoleOp>())
      if (forStep)
        StepParameters(role, *where, leastBytes).run();
      else
        ParameterMove(role, *where, leastBytes, hostUpdates).run();
  }
};

} // namespace
