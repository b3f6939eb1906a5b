//===- OperandCopies.cpp - operands of commands in another memory ---------===//
#include "compiler/passes/offload/OperandCopies.h"

#include "compiler/analysis/KernelSelection.h"

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

void ds::makeArena(plan::RoleOp role, plan::MemorySpace space) {
  OpBuilder members(role.getContext());
  for (auto arena : role.getOps<plan::ArenaOp>()) {
    if (arena.getSpace() == space)
      return;
    if (arena.getSpace() < space)
      members.setInsertionPointAfter(arena);
  }
  plan::ArenaOp::create(members, role.getLoc(), stringifyMemorySpace(space), space, IntegerAttr(), IntegerAttr());
}

llvm::SetVector<Operation *> ds::moveBuffers(plan::RoleOp role, plan::MemorySpace space,
                                             llvm::function_ref<bool(plan::BufferOp)> leaves) {
  llvm::SetVector<Operation *> moved;
  for (auto buffer : role.getOps<plan::BufferOp>())
    if (leaves(buffer))
      moved.insert(buffer);
  for (Operation *buffer : moved)
    cast<plan::BufferOp>(buffer).setArena(stringifyMemorySpace(space));
  if (!moved.empty()) {
    makeArena(role, plan::MemorySpace::Host);
    makeArena(role, space);
  }
  return moved;
}

bool ds::isStateOf(plan::BufferOp buffer, plan::Category category, int64_t leastBytes,
                   llvm::function_ref<bool(Operation *)> mayName) {
  return buffer.getScope() == plan::Scope::Plan && buffer.getCategory() == category &&
         int64_t(buffer.getBytes()) >= leastBytes && !buffer->use_empty() && llvm::all_of(buffer->getUsers(), mayName);
}

Value ds::makeBuffer(OpBuilder &members, plan::CommandOpInterface command, unsigned index, plan::MemorySpace space) {
  auto name = command.getBuffers()[index].getDefiningOp<plan::BufferOp>().getName();
  return plan::BufferOp::create(members, command->getLoc(), name, space, plan::tensorBytes(command.getTensor(index)),
                                plan::Scope::Call, plan::Category::Communication);
}

TensorPlace ds::placeOf(plan::CommandOpInterface command, unsigned index) {
  const int64_t stride = command.getRankStride(index);
  return {command.getBuffers()[index], command.getByteOffsets()[index], stride,
          stride == 0 ? FlatSymbolRefAttr() : command.getCommunicatorAttr()};
}

void ds::setOperand(plan::CommandOpInterface command, unsigned index, const TensorPlace &place) {
  command->setOperand(index, place.buffer);
  SmallVector<int64_t> offsets(command.getByteOffsets()), strides(command.getRankStrides());
  offsets[index] = place.offset;
  command.setByteOffsets(offsets);
  strides.resize(offsets.size());
  strides[index] = place.stride;
  if (!llvm::all_of(strides, [](int64_t stride) { return stride == 0; }))
    return command.setRankStrides(strides);
  command.setRankStrides({});
  if (!isa<plan::CollectiveOp>(command.getOperation()))
    command.setCommunicatorAttr({});
}

void ds::copyTensor(OpBuilder &builder, plan::CommandOpInterface command, RankedTensorType type,
                    const TensorPlace &from, const TensorPlace &to) {
  SmallVector<int64_t> strides;
  if (from.stride != 0 || to.stride != 0)
    strides = {from.stride, to.stride};
  plan::CopyOp::create(builder, command->getLoc(), ValueRange{from.buffer, to.buffer},
                       builder.getDenseI32ArrayAttr({int32_t(plan::Access::Read), int32_t(plan::Access::Write)}),
                       builder.getTypeArrayAttr({type, type}), builder.getDenseI64ArrayAttr({from.offset, to.offset}),
                       command.getQueueAttr(), /*waits=*/builder.getArrayAttr({}),
                       /*delays=*/builder.getDenseI64ArrayAttr({}), /*signals=*/builder.getArrayAttr({}),
                       /*reference=*/builder.getDenseI64ArrayAttr({}), builder.getDenseI64ArrayAttr(strides),
                       from.ranks ? from.ranks : to.ranks);
}

void ds::copyOperand(OpBuilder &builder, plan::CommandOpInterface command, unsigned index, Value from, Value to) {
  const TensorPlace own = placeOf(command, index);
  const bool leaves = from == own.buffer;
  copyTensor(builder, command, command.getTensor(index), leaves ? own : TensorPlace{from},
             leaves ? TensorPlace{to} : own);
}

void ds::copyWhole(OpBuilder &builder, plan::CommandOpInterface command, unsigned index, Value from, Value to) {
  copyTensor(builder, command, command.getTensor(index), {from}, {to});
}

void ds::setBuffers(plan::CommandOpInterface command, ArrayRef<Value> buffers) {
  for (auto [index, buffer] : llvm::enumerate(buffers))
    if (buffer != command.getBuffers()[index])
      setOperand(command, unsigned(index), {buffer});
}

bool ds::isStateAway(plan::BufferOp buffer, int64_t leastBytes) {
  return !buffer.getStays() && isStateOf(buffer, plan::Category::Optimizer, leastBytes, llvm::IsaPred<plan::KernelOp>);
}

bool ds::isParameterAway(plan::BufferOp buffer, int64_t leastBytes) {
  return isStateOf(buffer, plan::Category::Weights, leastBytes, llvm::IsaPred<plan::KernelOp, plan::CollectiveOp>);
}

bool ds::isUpdate(Operation *op) {
  if (!isa<plan::KernelOp>(op))
    return false;
  auto command = cast<plan::CommandOpInterface>(op);
  for (auto [index, operand] : llvm::enumerate(command.getBuffers()))
    if (operand.getDefiningOp<plan::BufferOp>().getCategory() == plan::Category::Weights &&
        command.getAccess(unsigned(index)) == plan::Access::ReadWrite)
      return true;
  return false;
}

bool ds::isPendingCopy(Operation *op) {
  auto kernel = dyn_cast<plan::KernelOp>(op);
  if (!kernel || !isCopy(kernel))
    return false;
  const auto categoryOf = [&](unsigned index) {
    return kernel.getBuffers()[index].getDefiningOp<plan::BufferOp>().getCategory();
  };
  return categoryOf(0) == plan::Category::Gradients && categoryOf(1) == plan::Category::Optimizer;
}

bool ds::isPending(plan::BufferOp buffer) { return llvm::any_of(buffer->getUsers(), isPendingCopy); }

std::optional<unsigned> ds::lookedUpIn(plan::CommandOpInterface command) {
  auto kernel = dyn_cast<plan::KernelOp>(command.getOperation());
  if (!kernel || kernel.getKernel() != "gather")
    return std::nullopt;
  int64_t moved = 0; // instead of the table
  for (unsigned index = 1; index < command.getBuffers().size(); ++index)
    moved += plan::tensorBytes(command.getTensor(index));
  return moved < plan::tensorBytes(command.getTensor(0)) ? std::optional(0U) : std::nullopt;
}

Operation *ds::lastWriter(plan::CommandOpInterface reader, unsigned index) {
  Operation *last = nullptr;
  for (OpOperand &use : reader.getBuffers()[index].getUses()) {
    Operation *op = use.getOwner();
    if (op->getBlock() != reader->getBlock())
      continue;
    auto other = dyn_cast<plan::CommandOpInterface>(op);
    if (other && other.writes(use.getOperandNumber()) && op->isBeforeInBlock(reader) &&
        (!last || last->isBeforeInBlock(op)))
      last = op;
  }
  return last;
}

Operation *ds::awaitOf(plan::CommandOpInterface command) {
  auto collective = dyn_cast<plan::CollectiveOp>(command.getOperation());
  if (collective && collective.getToken())
    for (Operation *user : collective.getToken().getUsers())
      return user;
  return command;
}
