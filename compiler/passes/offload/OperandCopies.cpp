//===- OperandCopies.cpp - operands of commands in another memory ---------===//
#include "compiler/passes/offload/OperandCopies.h"

using namespace mlir;
using namespace ds;

FailureOr<plan::MemorySpace> ds::spaceAway(ModuleOp module, StringRef space, int64_t leastBytes) {
  if (leastBytes < 0)
    return module.emitError() << "least-bytes is " << leastBytes << "; it must not be negative";
  const std::optional<plan::MemorySpace> where = plan::symbolizeMemorySpace(space);
  if (!where || where == plan::MemorySpace::Device)
    return module.emitError() << "space is " << space << "; it must be host or nvme";
  return *where;
}

plan::MemorySpace ds::spaceOf(Value buffer) {
  return *plan::symbolizeMemorySpace(buffer.getDefiningOp<plan::BufferOp>().getArena());
}

/// Behind those of the spaces before it, unless the role has one.
static void makeArena(plan::RoleOp role, plan::MemorySpace space) {
  OpBuilder members(role.getContext());
  for (auto arena : role.getOps<plan::ArenaOp>()) {
    if (arena.getSpace() == space)
      return;
    if (arena.getSpace() < space)
      members.setInsertionPointAfter(arena);
  }
  plan::ArenaOp::create(members, role.getLoc(), stringifyMemorySpace(space), space, IntegerAttr(), IntegerAttr());
}

llvm::DenseSet<Operation *> ds::moveBuffers(plan::RoleOp role, plan::MemorySpace space, plan::Category category,
                                            int64_t leastBytes, llvm::function_ref<bool(Operation *)> may) {
  llvm::DenseSet<Operation *> moved;
  for (auto buffer : role.getOps<plan::BufferOp>())
    if (buffer.getScope() == plan::Scope::Plan && buffer.getCategory() == category &&
        int64_t(buffer.getBytes()) >= leastBytes && !buffer->use_empty() && llvm::all_of(buffer->getUsers(), may)) {
      buffer.setArena(stringifyMemorySpace(space));
      moved.insert(buffer);
    }
  if (!moved.empty()) {
    makeArena(role, plan::MemorySpace::Host);
    makeArena(role, space);
  }
  return moved;
}

Value ds::makeBuffer(OpBuilder &members, plan::CommandOpInterface command, unsigned index, plan::MemorySpace space) {
  auto name = command.getBuffers()[index].getDefiningOp<plan::BufferOp>().getName();
  return plan::BufferOp::create(members, command->getLoc(), name, space, plan::tensorBytes(command.getTensor(index)),
                                plan::Scope::Call, plan::Category::Communication);
}

static plan::CopyOp makeCopy(OpBuilder &builder, plan::CommandOpInterface command, unsigned index, Value from, Value to,
                             ArrayRef<int64_t> offsets) {
  return plan::CopyOp::create(builder, command->getLoc(), ValueRange{from, to},
                              builder.getDenseI32ArrayAttr({int32_t(plan::Access::Read), int32_t(plan::Access::Write)}),
                              builder.getTypeArrayAttr({command.getTensor(index), command.getTensor(index)}),
                              builder.getDenseI64ArrayAttr(offsets), command.getQueueAttr(),
                              /*waits=*/builder.getArrayAttr({}), /*delays=*/builder.getDenseI64ArrayAttr({}),
                              /*signals=*/builder.getArrayAttr({}), /*reference=*/builder.getDenseI64ArrayAttr({}),
                              /*rank_strides=*/builder.getDenseI64ArrayAttr({}), /*communicator=*/FlatSymbolRefAttr());
}

void ds::copyOperand(OpBuilder &builder, plan::CommandOpInterface command, unsigned index, Value from, Value to) {
  const bool leaves = from == command.getBuffers()[index];
  const auto atOwn = [&](int64_t value) {
    return leaves ? SmallVector<int64_t>{value, 0} : SmallVector<int64_t>{0, value};
  };
  plan::CopyOp copy = makeCopy(builder, command, index, from, to, atOwn(command.getByteOffsets()[index]));
  if (command.getRankStride(index) == 0)
    return;
  copy.setRankStrides(atOwn(command.getRankStride(index)));
  copy.setCommunicatorAttr(command.getCommunicatorAttr());
}

void ds::copyWhole(OpBuilder &builder, plan::CommandOpInterface command, unsigned index, Value from, Value to) {
  makeCopy(builder, command, index, from, to, {0, 0});
}

void ds::setBuffers(plan::CommandOpInterface command, ArrayRef<Value> buffers) {
  SmallVector<int64_t> offsets, strides;
  for (auto [index, buffer] : llvm::enumerate(buffers)) {
    const bool stays = buffer == command.getBuffers()[index];
    offsets.push_back(stays ? command.getByteOffsets()[index] : 0);
    strides.push_back(stays ? command.getRankStride(unsigned(index)) : 0);
  }
  command.getBuffersMutable().assign(buffers);
  command.setByteOffsets(offsets);
  if (!llvm::all_of(strides, [](int64_t stride) { return stride == 0; }))
    return command.setRankStrides(strides);
  command.setRankStrides({});
  if (!isa<plan::CollectiveOp>(command.getOperation()))
    command.setCommunicatorAttr({});
}
