//===- RoutineUses.cpp - the straight line of a routine, by buffers -----------===//
#include "compiler/passes/plan/RoutineUses.h"

using namespace mlir;
using namespace ds;

RoutineUses::RoutineUses(plan::RoutineOp routine) {
  int64_t position = 0;
  for (auto command : routine.getOps<plan::CommandOpInterface>()) {
    for (auto [index, buffer] : llvm::enumerate(command.getBuffers()))
      uses_[buffer.getDefiningOp()].push_back({position, command, unsigned(index)});
    position_[command] = position++;
  }
}

ArrayRef<RoutineUse> RoutineUses::of(plan::BufferOp buffer) const {
  const auto it = uses_.find(buffer);
  return it == uses_.end() ? ArrayRef<RoutineUse>() : ArrayRef<RoutineUse>(it->second);
}

static void move(const RoutineUse &use, plan::BufferOp into, int64_t offset, int64_t stride,
                 FlatSymbolRefAttr communicator) {
  plan::CommandOpInterface command = use.command;
  command->setOperand(use.index, into);
  if (offset != 0) {
    SmallVector<int64_t> offsets(command.getByteOffsets());
    offsets[use.index] += offset;
    command.setByteOffsets(offsets);
  }
  if (stride == 0)
    return;
  SmallVector<int64_t> strides(command.getRankStrides());
  strides.resize(command.getBuffers().size());
  strides[use.index] = stride;
  command.setRankStrides(strides);
  command.setCommunicatorAttr(communicator);
}

void RoutineUses::merge(plan::BufferOp from, plan::BufferOp into, int64_t offset, int64_t stride,
                        FlatSymbolRefAttr communicator) {
  const SmallVector<RoutineUse, 4> moved = std::move(uses_[from]);
  uses_.erase(from);
  for (const RoutineUse &use : moved)
    move(use, into, offset, stride, communicator);
  uses_[into].append(moved.begin(), moved.end());
  from.erase();
}

void RoutineUses::erase(plan::CommandOpInterface command) {
  for (Value buffer : command.getBuffers())
    llvm::erase_if(uses_[buffer.getDefiningOp()], [&](const RoutineUse &use) { return use.command == command; });
  command->erase();
}
