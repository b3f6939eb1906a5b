//===- LayerSums.cpp - gradients that leave once for all micro-batches ----===//
#include "compiler/passes/offload/LayerSums.h"

#include "compiler/passes/offload/HostSums.h"
#include "compiler/passes/offload/OperandCopies.h"
#include "compiler/passes/offload/StepStart.h"

#include "mlir/IR/Builders.h"

#include "llvm/ADT/STLExtras.h"

#include <optional>

using namespace mlir;
using namespace ds;

namespace {

class LayerSums {
public:
  explicit LayerSums(plan::RoleOp role) : groups_(role), members_(role.getContext()) {}

  void run(llvm::SetVector<Operation *> &moved) {
    if (groups_.empty())
      return;
    for (Operation *buffer : llvm::to_vector(moved))
      if (const std::optional<size_t> group = makerOf(cast<plan::BufferOp>(buffer))) {
        leave(cast<plan::BufferOp>(buffer), *group);
        moved.remove(buffer);
      }
  }

private:
  /// The only group that adds to a gradient; nothing where there are several, or its sum is not for the device to make.
  std::optional<size_t> makerOf(plan::BufferOp gradient) const {
    std::optional<size_t> maker;
    for (Operation *user : gradient->getUsers()) {
      const std::optional<size_t> group = groups_.find(user->getParentOp());
      if (group && maker.value_or(*group) != *group)
        return std::nullopt;
      if (group)
        maker = group;
      else if (!isa<plan::KernelOp, plan::FillOp>(user))
        return std::nullopt;
    }
    if (!maker)
      return std::nullopt;
    const HostSums sums = findHostSums(groups_.routines()[*maker],
                                       [&](Value buffer) { return buffer == gradient.getBuffer(); });
    return sums.kernels.empty() ? maker : std::nullopt;
  }

  void leave(plan::BufferOp gradient, size_t group) {
    members_.setInsertionPointAfter(gradient);
    const Value near =
        plan::BufferOp::create(members_, gradient.getLoc(), gradient.getName(), plan::MemorySpace::Device,
                               gradient.getBytes(), plan::Scope::Step, plan::Category::Gradients);
    Block &before = groups_.startOf(group).getBody().front(), &behind = groups_.startOf(group + 1).getBody().front();
    plan::CommandOpInterface update, adds;
    Type element;
    for (Operation *user : llvm::make_early_inc_range(gradient->getUsers())) {
      auto command = cast<plan::CommandOpInterface>(user);
      if (isa<plan::FillOp>(user))
        user->moveBefore(&before, before.end());
      else if (groups_.find(user->getParentOp()))
        adds = command;
      else if (isSquares(user))
        takeSquares(command, behind);
      else {
        update = isUpdate(user) && user->getBlock() == &behind ? command : update;
        continue;
      }
      for (auto [index, operand] : llvm::enumerate(command.getBuffers()))
        if (operand == gradient.getBuffer()) {
          element = command.getTensor(unsigned(index)).getElementType();
          setOperand(command, unsigned(index), nearOf(command, unsigned(index), near));
        }
    }
    const int64_t elements = int64_t(gradient.getBytes()) * 8 / int64_t(element.getIntOrFloatBitWidth());
    OpBuilder leaves(&behind, update ? Block::iterator(update.getOperation()) : behind.end());
    copyAway(leaves, adds, RankedTensorType::get({elements}, element), gradient, near);
  }

  static bool isSquares(Operation *user) {
    auto kernel = dyn_cast<plan::KernelOp>(user);
    return kernel && kernel.getKernel() == "block_sum_squares";
  }

  static TensorPlace nearOf(plan::CommandOpInterface command, unsigned index, Value near) {
    TensorPlace place = placeOf(command, index);
    place.buffer = near;
    return place;
  }

  /// In a start, and what they are written to outlives it.
  static void takeSquares(plan::CommandOpInterface squares, Block &start) {
    squares->moveBefore(&start, start.begin());
    for (Value operand : squares.getBuffers()) {
      auto buffer = operand.getDefiningOp<plan::BufferOp>();
      if (buffer.getScope() == plan::Scope::Call)
        buffer.setScope(plan::Scope::Step);
      if (start.getParentOp()->isBeforeInBlock(buffer))
        buffer->moveBefore(start.getParentOp());
    }
  }

  void copyAway(OpBuilder &leaves, plan::CommandOpInterface command, RankedTensorType all, plan::BufferOp gradient,
                Value near) {
    TensorPlace there{gradient};
    if (spaceOf(gradient) == plan::MemorySpace::Nvme) {
      there.buffer = plan::BufferOp::create(members_, gradient.getLoc(), gradient.getName(), plan::MemorySpace::Host,
                                            gradient.getBytes(), plan::Scope::Call, plan::Category::Communication);
      copyTensor(leaves, command, all, {near}, there);
      return copyTensor(leaves, command, all, there, {gradient});
    }
    copyTensor(leaves, command, all, {near}, there);
  }

  LayerGroups groups_;
  OpBuilder members_; // where buffers go
};

} // namespace

void ds::leaveByLayer(plan::RoleOp role, llvm::SetVector<Operation *> &moved) { LayerSums(role).run(moved); }
