//===- LayerSums.cpp - gradients that leave once for all micro-batches ----===//
#include "compiler/passes/offload/LayerSums.h"

#include "compiler/passes/offload/HostSums.h"
#include "compiler/passes/offload/OperandCopies.h"
#include "compiler/passes/offload/StepStart.h"

#include "mlir/IR/Builders.h"

#include "llvm/ADT/STLExtras.h"

#include <optional>
#include <set>

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
      if (const std::optional<Makers> makers = makersOf(cast<plan::BufferOp>(buffer))) {
        leave(cast<plan::BufferOp>(buffer), *makers);
        if (makers->alone)
          moved.remove(buffer);
      }
  }

private:
  /// Groups that add to a gradient.
  struct Makers {
    size_t first;
    bool alone; // there is no other
    bool whole; // nothing adds to what they make, nor sums it over ranks
  };

  /// Nothing where the first sum is not for the device to make.
  std::optional<Makers> makersOf(plan::BufferOp gradient) const {
    std::set<size_t> makers;
    bool whole = true;
    for (Operation *user : gradient->getUsers())
      if (const std::optional<size_t> group = groups_.find(user->getParentOp()))
        makers.insert(*group);
      else if (!isa<plan::KernelOp, plan::FillOp>(user))
        return std::nullopt;
      else
        whole &= isa<plan::FillOp>(user) || !writes(user, gradient);
    if (makers.empty())
      return std::nullopt;
    const size_t first = *makers.begin();
    const HostSums sums =
        findHostSums(groups_.routines()[first], [&](Value buffer) { return buffer == gradient.getBuffer(); });
    return sums.kernels.empty() ? std::optional(Makers{first, makers.size() == 1, whole}) : std::nullopt;
  }

  void leave(plan::BufferOp gradient, const Makers &makers) {
    const size_t group = makers.first;
    members_.setInsertionPointAfter(gradient);
    const Value near =
        plan::BufferOp::create(members_, gradient.getLoc(), gradient.getName(), plan::MemorySpace::Device,
                               gradient.getBytes(), plan::Scope::Step, plan::Category::Gradients);
    Block &before = groups_.startOf(group).getBody().front(), &behind = groups_.startOf(group + 1).getBody().front();
    plan::CommandOpInterface adds;
    Operation *reader = nullptr; // the first that it has to be away for
    Type element;
    // Uses change below, several of a command at once.
    for (Operation *user : llvm::SetVector<Operation *>(gradient->user_begin(), gradient->user_end())) {
      auto command = cast<plan::CommandOpInterface>(user);
      if (isa<plan::FillOp>(user))
        user->moveBefore(&before, before.end());
      else if (groups_.find(user->getParentOp()) == group)
        adds = command;
      else if (makers.alone && makers.whole && isSquares(user))
        takeSquares(command, behind);
      else {
        if (user->getBlock() == &behind && (!reader || user->isBeforeInBlock(reader)))
          reader = user;
        continue;
      }
      for (auto [index, operand] : llvm::enumerate(command.getBuffers()))
        if (operand == gradient.getBuffer()) {
          element = command.getTensor(unsigned(index)).getElementType();
          setOperand(command, unsigned(index), nearOf(command, unsigned(index), near));
        }
    }
    const int64_t elements = int64_t(gradient.getBytes()) * 8 / int64_t(element.getIntOrFloatBitWidth());
    OpBuilder leaves(&behind, reader ? Block::iterator(reader) : behind.end());
    copyAway(leaves, adds, RankedTensorType::get({elements}, element), gradient, near);
  }

  static bool writes(Operation *user, plan::BufferOp buffer) {
    auto command = cast<plan::CommandOpInterface>(user);
    return llvm::any_of(llvm::seq<unsigned>(0, command.getBuffers().size()), [&](unsigned operand) {
      return command.getBuffers()[operand] == buffer.getBuffer() && command.writes(operand);
    });
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
