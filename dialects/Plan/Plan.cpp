//===- Plan.cpp - registration and verifiers of the plan dialect ----------===//
#include "dialects/Plan/Plan.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace ds::plan;

#include "dialects/Plan/PlanDialect.cpp.inc"
#include "dialects/Plan/PlanEnums.cpp.inc"
#include "dialects/Plan/PlanInterfaces.cpp.inc"
#define GET_TYPEDEF_CLASSES
#include "dialects/Plan/PlanTypes.cpp.inc"

void PlanDialect::initialize() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "dialects/Plan/PlanTypes.cpp.inc"
      >();
  registerPlanDialectOperations(this);
}

int64_t ds::plan::tensorBytes(Type type) {
  auto tensor = cast<RankedTensorType>(type);
  const int64_t bits = tensor.getElementTypeBitWidth();
  return tensor.getNumElements() * (bits == 1 ? 1 : bits / 8);
}

LogicalResult CommunicatorOp::verify() {
  int64_t next = 0;
  for (int64_t axis : getAxes()) {
    if (axis < next) // communicator_c1
      return emitOpError() << "axes [" << getAxes() << "] are not ascending indices";
    next = axis + 1;
  }
  return success();
}

LogicalResult ChannelOp::verify() {
  const int64_t axis = static_cast<int64_t>(getAxis()), from = static_cast<int64_t>(getFrom()),
                to = static_cast<int64_t>(getTo());
  if (axis < 0 || from < 0 || to < 0 || from == to) // channel_c1
    return emitOpError() << "on axis " << axis << " leads from " << from << " to " << to
                         << "; these must be two coordinates of an axis";
  return success();
}

LogicalResult CodeOp::verify() {
  if (int64_t(getBlocks()) < 1 || int64_t(getThreads()) < 1 || int64_t(getThreads()) > 1024) // code_c1
    return emitOpError() << "has " << int64_t(getBlocks()) << " blocks of " << int64_t(getThreads())
                         << " threads; there must be blocks, of 1 to 1024 threads";
  return success();
}

LogicalResult InputOp::verify() {
  if (!cast<RankedTensorType>(getType()).hasStaticShape()) // input_c1
    return emitOpError() << "must be a static tensor, not " << getType();
  if (getTokens() && *getTokens() != "same" && *getTokens() != "next") // input_c2
    return emitOpError() << "tokens \"" << *getTokens() << "\" is none of same, next";
  if (getLimitAttr() && getLimitAttr().getInt() < 0) // input_c3
    return emitOpError() << "limit is " << getLimitAttr().getInt() << "; it must not be negative";
  if (getIgnoredAttr() && !getLimitAttr()) // input_c3
    return emitOpError() << "ignores " << getIgnoredAttr().getInt() << ", but has no limit that would refuse it";
  return success();
}

LogicalResult RoutineOp::verify() {
  for (Operation &op : getBody().front())
    if (!isa<CommandOpInterface, AwaitOp>(op)) // routine_c1
      return emitOpError() << "holds '" << op.getName() << "', which is no command";
  const bool ofRole = getPhase() == Phase::Begin || getPhase() == Phase::Update || getPhase() == Phase::Metric;
  if (getPhase() != Phase::Receive && ofRole == getStage().has_value()) // routine_c2
    return emitOpError() << "of phase " << stringifyPhase(getPhase())
                         << (ofRole ? " serves all stages of its role and has none" : " must say of which stage it is");
  if (getStage() && static_cast<int64_t>(*getStage()) < 0) // routine_c2
    return emitOpError() << "stage " << static_cast<int64_t>(*getStage()) << " is negative";
  return success();
}

void BufferOp::build(OpBuilder &builder, OperationState &state, StringRef name, MemorySpace space, int64_t bytes,
                     Scope scope, Category category, FlatSymbolRefAttr holds) {
  MLIRContext *context = builder.getContext();
  build(builder, state, BufferType::get(context), builder.getStringAttr(name),
        FlatSymbolRefAttr::get(context, stringifyMemorySpace(space)), builder.getI64IntegerAttr(bytes),
        ScopeAttr::get(context, scope), CategoryAttr::get(context, category), builder.getI64IntegerAttr(1), holds,
        /*next=*/UnitAttr(), /*stays=*/UnitAttr(), IntegerAttr(), DenseI64ArrayAttr(), DenseI64ArrayAttr());
}

LogicalResult BufferOp::verifySymbolUses(SymbolTableCollection &symbols) {
  if (!symbols.lookupNearestSymbolFrom<ArenaOp>(*this, getArenaAttr())) // buffer_c1
    return emitOpError() << getArenaAttr() << " is not a plan.arena";
  const int64_t slots = static_cast<int64_t>(getSlots()), bytes = static_cast<int64_t>(getBytes());
  if (slots < 1 || bytes < 0 || (slots > 1 && getScope() != Scope::Slot)) // buffer_c2
    return emitOpError() << "of scope " << stringifyScope(getScope()) << " has " << bytes << " bytes in " << slots
                         << " slots; only scope slot has several";
  if (getVariableAttr() ? getScope() != Scope::Plan : getScope() == Scope::Plan) // buffer_c3
    return emitOpError() << "of scope " << stringifyScope(getScope())
                         << (getVariableAttr() ? " names a variable" : " names no variable");
  const int64_t others = getSlotOffsets() ? int64_t(getSlotOffsets()->size()) : 0;
  if (others != (getOffsetAttr() ? slots - 1 : 0)) // buffer_c4
    return emitOpError() << "has " << slots << " slots, " << (getOffsetAttr() ? "an offset" : "no offset") << " and "
                         << others << " offsets of further slots";
  if (getNext() && (getScope() != Scope::Plan ||
                    symbols.lookupNearestSymbolFrom<ArenaOp>(*this, getArenaAttr()).getSpace() != MemorySpace::Nvme))
    return emitOpError() << "in " << getArenaAttr() << " of scope " << stringifyScope(getScope()) // buffer_c5
                         << " is next; only what outlives a step in space nvme is";
  if (getStays() && (getScope() != Scope::Plan || getCategory() != Category::Optimizer)) // buffer_c6
    return emitOpError() << "of scope " << stringifyScope(getScope()) << " and category "
                         << stringifyCategory(getCategory()) << " stays; only optimizer state of scope plan does";
  return success();
}

//===-- commands ---------------------------------------------------------------===//

void FillOp::build(OpBuilder &builder, OperationState &state, Value buffer, RankedTensorType type, StringRef queue) {
  const DenseI64ArrayAttr none = builder.getDenseI64ArrayAttr({});
  build(builder, state, buffer, builder.getDenseI32ArrayAttr({int32_t(Access::Write)}),
        builder.getTypeArrayAttr({Type(type)}), builder.getDenseI64ArrayAttr({0}),
        FlatSymbolRefAttr::get(builder.getContext(), queue), builder.getArrayAttr({}), none, builder.getArrayAttr({}),
        none, none, FlatSymbolRefAttr());
}

std::pair<int64_t, int64_t> CommandOpInterface::getByteRange(unsigned index) {
  if (getRankStride(index) != 0)
    return {0, int64_t(getBuffers()[index].getDefiningOp<BufferOp>().getBytes())};
  const int64_t begin = getByteOffsets()[index];
  return {begin, begin + tensorBytes(getTensor(index))};
}

void CommandOpInterface::addWait(StringRef event, int64_t delay) {
  auto waits = llvm::to_vector(getWaits());
  auto delays = llvm::to_vector(getDelays());
  waits.push_back(FlatSymbolRefAttr::get(getContext(), event));
  delays.push_back(delay);
  setWaitsAttr(ArrayAttr::get(getContext(), waits));
  setDelays(delays);
}

void CommandOpInterface::addSignal(StringRef event) {
  auto signals = llvm::to_vector(getSignals());
  signals.push_back(FlatSymbolRefAttr::get(getContext(), event));
  setSignalsAttr(ArrayAttr::get(getContext(), signals));
}

/// Communicators belong to the module, not to a role.
static bool communicatorOf(CommandOpInterface op, SymbolTableCollection &symbols) {
  auto module = op->getParentOfType<ModuleOp>();
  return module && symbols.lookupSymbolIn<CommunicatorOp>(module, op.getCommunicatorAttr());
}

/// command_c1 to command_c4, for every kind of command.
static LogicalResult verifyCommand(CommandOpInterface op, SymbolTableCollection &symbols) {
  const size_t count = op.getBuffers().size();
  if (op.getAccesses().size() != count || op.getTypes().size() != count || op.getByteOffsets().size() != count ||
      op.getWaits().size() != op.getDelays().size()) // command_c1
    return op->emitOpError() << "has " << count << " buffers, " << op.getAccesses().size() << " accesses, "
                             << op.getTypes().size() << " types, " << op.getByteOffsets().size() << " offsets, "
                             << op.getWaits().size() << " waits, " << op.getDelays().size() << " delays";
  if (!symbols.lookupNearestSymbolFrom<QueueOp>(op, op.getQueueAttr())) // command_c2
    return op->emitOpError() << op.getQueueAttr() << " is not a plan.queue";
  for (ArrayAttr events : {op.getWaits(), op.getSignals()})
    for (Attribute event : events)
      if (auto name = dyn_cast<FlatSymbolRefAttr>(event);
          !name || !symbols.lookupNearestSymbolFrom<EventOp>(op, name)) // command_c2
        return op->emitOpError() << event << " is not a plan.event";
  ArrayRef<int64_t> strides = op.getRankStrides();
  const bool strided = llvm::any_of(strides, [](int64_t stride) { return stride != 0; });
  if ((!strides.empty() && strides.size() != count) || (strided && !op.getCommunicatorAttr()) ||
      llvm::any_of(strides, [](int64_t stride) { return stride < 0; })) // command_c4
    return op->emitOpError() << "has rank strides [" << strides << "] for " << count << " buffers"
                             << (op.getCommunicatorAttr() ? "" : " and names no communicator");
  if (op.getCommunicatorAttr() && !communicatorOf(op, symbols)) // command_c4
    return op->emitOpError() << op.getCommunicatorAttr() << " is not a plan.communicator";
  for (auto [index, buffer] : llvm::enumerate(op.getBuffers())) {
    auto owner = buffer.getDefiningOp<BufferOp>();
    auto type = dyn_cast<RankedTensorType>(cast<TypeAttr>(op.getTypes()[index]).getValue());
    if (!owner || !type || !type.hasStaticShape() || !type.getElementType().isIntOrFloat()) // command_c3
      return op->emitOpError() << "operand " << index << " must be a static tensor in a plan.buffer, not "
                               << op.getTypes()[index];
    const int64_t stride = strides.empty() ? 0 : strides[index];
    const int64_t begin = op.getByteOffsets()[index], bytes = tensorBytes(type) + stride;
    const int64_t size = static_cast<int64_t>(owner.getBytes());
    if (begin < 0 || begin > size || bytes > size - begin) // command_c3
      return op->emitOpError() << "operand " << index << " takes " << bytes << " bytes at " << begin
                               << " of a buffer of " << size;
  }
  return success();
}
LogicalResult CollectiveOp::verifySymbolUses(SymbolTableCollection &symbols) {
  if (!getCommunicator() || getBuffers().empty() || getBuffers().size() % partSize() != 0) // collective_c1
    return emitOpError() << "has " << getBuffers().size() << " buffers; it must name a communicator and have "
                         << partSize() << " buffers a part";
  return verifyCommand(*this, symbols);
}
LogicalResult CopyOp::verifySymbolUses(SymbolTableCollection &symbols) {
  const bool isPair =
      getBuffers().size() == 2 && getAccesses() == ArrayRef({int32_t(Access::Read), int32_t(Access::Write)});
  if (!isPair || getTypes().size() != 2 || getTypes()[0] != getTypes()[1]) // copy_c1
    return emitOpError() << "has " << getBuffers().size() << " buffers, accesses [" << getAccesses() << "] and types "
                         << getTypes() << "; it reads the first of two and writes the second, of one type";
  return verifyCommand(*this, symbols);
}
LogicalResult KernelOp::verifySymbolUses(SymbolTableCollection &symbols) {
  auto module = (*this)->getParentOfType<ModuleOp>();
  if (getCodeAttr() && (!module || !symbols.lookupSymbolIn<CodeOp>(module, getCodeAttr()))) // kernel_c1
    return emitOpError() << getCodeAttr() << " is not a plan.code";
  return verifyCommand(*this, symbols);
}
LogicalResult FillOp::verifySymbolUses(SymbolTableCollection &symbols) { return verifyCommand(*this, symbols); }
LogicalResult FeedOp::verifySymbolUses(SymbolTableCollection &symbols) { return verifyCommand(*this, symbols); }

template <typename MessageOp> static LogicalResult verifyMessage(MessageOp op, SymbolTableCollection &symbols) {
  auto module = op->template getParentOfType<ModuleOp>();
  if (!module || !symbols.lookupSymbolIn<ChannelOp>(module, op.getChannelAttr())) // message_c1
    return op.emitOpError() << op.getChannelAttr() << " is not a plan.channel";
  return verifyCommand(op, symbols);
}
LogicalResult SendOp::verifySymbolUses(SymbolTableCollection &symbols) { return verifyMessage(*this, symbols); }
LogicalResult ReceiveOp::verifySymbolUses(SymbolTableCollection &symbols) { return verifyMessage(*this, symbols); }

LogicalResult CallOp::verifySymbolUses(SymbolTableCollection &symbols) { // call_c1
  if (!symbols.lookupNearestSymbolFrom<RoutineOp>(*this, getRoutineAttr()))
    return emitOpError() << getRoutineAttr() << " is not a plan.routine";
  return success();
}

SmallVector<CallOp> ProgramOp::getCallsBeforeTail() {
  SmallVector<CallOp> calls;
  for (Operation &op : getBody().front()) {
    if (isa<TailOp>(op))
      break;
    if (auto call = dyn_cast<CallOp>(op))
      calls.push_back(call);
  }
  return calls;
}

/// The scalar that the host reads.
static bool isFloatScalar(Value operand, Type read) {
  auto type = dyn_cast<RankedTensorType>(read);
  auto buffer = operand.getDefiningOp<BufferOp>();
  return buffer && type && type.getRank() == 0 && isa<FloatType>(type.getElementType()) &&
         tensorBytes(type) <= static_cast<int64_t>(buffer.getBytes());
}

LogicalResult TailOp::verify() {
  if (!isFloatScalar(getUnlessOne(), getType())) // tail_c1
    return emitOpError() << "must read a float scalar in a plan.buffer, not " << getType();
  auto program = cast<ProgramOp>((*this)->getParentOp());
  const auto isCallBefore = [&](CallOp call) { return call->isBeforeInBlock(*this); };
  if (llvm::range_size(program.getOps<TailOp>()) > 1 || llvm::none_of(program.getOps<CallOp>(), isCallBefore) ||
      llvm::all_of(program.getOps<CallOp>(), isCallBefore)) // tail_c2
    return emitOpError() << "must be the only one of program \"" << program.getName()
                         << "\", with calls before it and behind it";
  return success();
}

LogicalResult MetricOp::verify() {
  if (!isFloatScalar(getBuffer(), getType())) // metric_c1
    return emitOpError() << "\"" << getName() << "\" must be a float scalar in a plan.buffer, not " << getType();
  return success();
}
