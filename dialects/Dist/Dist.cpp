//===- Dist.cpp - registration and verifiers of the dist dialect ----------===//
#include "dialects/Dist/Mesh.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace ds::dist;

#include "dialects/Dist/DistDialect.cpp.inc"
#include "dialects/Dist/DistEnums.cpp.inc"
#include "dialects/Dist/DistInterfaces.cpp.inc"
#define GET_TYPEDEF_CLASSES
#include "dialects/Dist/DistTypes.cpp.inc"

void DistDialect::initialize() {
  addShardings();
  addTypes<
#define GET_TYPEDEF_LIST
#include "dialects/Dist/DistTypes.cpp.inc"
      >();
  registerDistDialectOperations(this);
}

InFlightDiagnostic &&ds::dist::withDeclaration(InFlightDiagnostic &&error, Operation *declaration) {
  if (declaration)
    error.attachNote(declaration->getLoc()) << "declared here";
  return std::move(error);
}

LogicalResult ValueOp::verify() {
  if (!cast<RankedTensorType>(getType()).hasStaticShape()) // value_c1
    return emitOpError() << "must be a static tensor, not " << getType();
  if (getSpace() != MemorySpace::Device && (getInput() || getBucket())) // value_c4
    return emitOpError() << "is " << (getInput() ? "a graph input" : "the whole of a bucket")
                         << ", which kernels read where it lies: in device memory, not "
                         << stringifyMemorySpace(getSpace());
  return success();
}

/// Axes of the module's mesh, dimensions of the type.
static LogicalResult verifySharding(ValueOp value) {
  auto module = value->getParentOfType<ModuleOp>();
  MeshOp mesh = module ? meshOf(module) : MeshOp();
  for (const AxisPlacement &placement : value.getShardingAttr().getPlacements()) {
    if (!mesh || !axisIndex(mesh, placement.axis)) // value_c3
      return withMesh(
          value.emitOpError() << "is sharded by axis " << placement.axis << ", which the mesh does not have", mesh);
    if (placement.dim && *placement.dim >= cast<RankedTensorType>(value.getType()).getRank()) // value_c3
      return value.emitOpError() << "is sharded along dimension " << *placement.dim << ", and " << value.getType()
                                 << " has none";
  }
  return success();
}

LogicalResult ValueOp::verifySymbolUses(SymbolTableCollection &symbols) {
  if (getSharding() && failed(verifySharding(*this)))
    return failure();
  if (!getBucket())
    return success();
  auto bucket = symbols.lookupNearestSymbolFrom<BucketOp>(*this, getBucketAttr());
  const auto isWholeOf = [](RankedTensorType whole, Type kept) { // in any type of float
    return isa<FloatType>(getElementTypeOrSelf(kept)) && whole.clone(getElementTypeOrSelf(kept)) == kept;
  };
  if (!bucket || !isWholeOf(bucket.getWholeType(), getType())) // value_c2
    return withDeclaration(emitOpError() << "is not the whole of a dist.bucket", bucket);
  return success();
}

LogicalResult FragmentOp::verify() {
  if (getBody().getNumArguments() != 0) // fragment_c1
    return emitOpError() << "body has arguments; dist.load reads what others stored";
  const bool ofRank = getPipe().has_value(), isReceive = getPhase() == Phase::Receive;
  if (ofRank == getStage().has_value() || (!isReceive && ofRank != isOfRank(getPhase()))) // fragment_c2
    return emitOpError() << "of phase " << stringifyPhase(getPhase()) << " has " << (getStage() ? "a" : "no")
                         << " stage and " << (ofRank ? "a" : "no") << " pipe; it must have "
                         << (isReceive              ? "one of the two"
                             : isOfRank(getPhase()) ? "a pipe alone"
                                                    : "a stage alone");
  if (const auto number = static_cast<int64_t>(ofRank ? *getPipe() : *getStage()); number < 0) // fragment_c2
    return emitOpError() << (ofRank ? "pipe " : "stage ") << number << " is negative";
  if (isReceive != getAheadOf().has_value()) // fragment_c3
    return emitOpError() << "of phase " << stringifyPhase(getPhase())
                         << (isReceive ? " must say for which fragment it is" : " is for no other fragment");
  return success();
}

LogicalResult FragmentOp::verifySymbolUses(SymbolTableCollection &symbols) {
  if (!getAheadOf())
    return success();
  auto served = symbols.lookupNearestSymbolFrom<FragmentOp>((*this)->getParentOp(), getAheadOfAttr());
  if (!served) // fragment_c3
    return emitOpError() << getAheadOfAttr() << " is not a dist.fragment";
  if (served.getPhase() != Phase::Receive && served.getStage() == getStage() && served.getPipe() == getPipe())
    return success();
  return withDeclaration(emitOpError() << "is for " << getAheadOfAttr() // fragment_c3
                                       << ", which receives itself or is of another stage or coordinate",
                         served);
}

LogicalResult RoleOp::verify() {
  int64_t next = 0;
  ArrayRef<int64_t> ranks = getRanks();
  bool ascending = ranks.size() % 2 == 0 && !ranks.empty();
  for (size_t i = 0; ascending && i < ranks.size(); i += 2) {
    ascending = ranks[i] >= next && ranks[i + 1] >= ranks[i];
    next = ranks[i + 1] + 1;
  }
  if (!ascending) // role_c1
    return emitOpError() << "ranks [" << ranks << "] are not ascending, disjoint pairs [first, last]";
  return success();
}

/// The value that `name` refers to; reports on `op` where there is none or its type is another.
static ValueOp lookup(Operation *op, FlatSymbolRefAttr name, SymbolTableCollection &symbols, Type type = {}) {
  auto value = symbols.lookupNearestSymbolFrom<ValueOp>(op->getParentOp(), name);
  if (!value) {
    op->emitOpError() << name << " is not a dist.value";
    return {};
  }
  if (type && value.getType() != type) {
    withDeclaration(op->emitOpError() << name << " is " << value.getType() << ", not " << type, value);
    return {};
  }
  return value;
}

LogicalResult LoadOp::verifySymbolUses(SymbolTableCollection &symbols) {
  ValueOp value = lookup(*this, getValueAttr(), symbols, getResult().getType());
  if (!value) // load_c1
    return failure();
  for (Operation *user : getResult().getUsers()) {
    auto transfer = dyn_cast<TransferOp>(user);
    if (value.getSpace() == (transfer ? transfer.getFrom() : MemorySpace::Device))
      continue;
    InFlightDiagnostic error = emitOpError()
                               << getValueAttr() << " lies in " << stringifyMemorySpace(value.getSpace()) // load_c2
                               << "; '" << user->getName() << "' does not take it from there";
    error.attachNote(user->getLoc()) << "used here";
    return withDeclaration(std::move(error), value);
  }
  return success();
}

/// Where a tensor of a fragment lies, if it is not loaded.
static MemorySpace spaceOf(Value tensor) {
  auto transfer = tensor.getDefiningOp<TransferOp>();
  return transfer ? transfer.getTo() : MemorySpace::Device;
}

LogicalResult StoreOp::verifySymbolUses(SymbolTableCollection &symbols) {
  ValueOp value = lookup(*this, getValueAttr(), symbols, getTensor().getType());
  if (value && value.getInput()) // store_c1
    return withDeclaration(emitOpError() << getValueAttr() << " is the graph input \"" << *value.getInput()
                                         << "\"; only a feed writes it",
                           value);
  if (value && value.getSpace() != spaceOf(getTensor())) // store_c2
    return withDeclaration(emitOpError() << getValueAttr() << " lies in " << stringifyMemorySpace(value.getSpace())
                                         << ", the tensor in " << stringifyMemorySpace(spaceOf(getTensor())),
                           value);
  return success(bool(value));
}

LogicalResult FeedOp::verifySymbolUses(SymbolTableCollection &symbols) {
  ValueOp value = lookup(*this, getValueAttr(), symbols);
  if (value && !value.getInput()) // feed_c1
    return withDeclaration(emitOpError() << getValueAttr() << " is no graph input", value);
  return success(bool(value));
}

LogicalResult ChannelOp::verify() {
  const int64_t from = static_cast<int64_t>(getFrom()), to = static_cast<int64_t>(getTo());
  if (from < 0 || to < 0 || from == to) // channel_c1
    return emitOpError() << "leads from " << from << " to " << to << "; these must be two coordinates of \""
                         << getAxis() << "\"";
  return success();
}

static LogicalResult verifyChannel(Operation *op, FlatSymbolRefAttr name, SymbolTableCollection &symbols) {
  if (!symbols.lookupNearestSymbolFrom<ChannelOp>(op->getParentOp(), name)) // send_c1, receive_c1
    return op->emitOpError() << name << " is not a dist.channel";
  return success();
}

LogicalResult SendOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return verifyChannel(*this, getChannelAttr(), symbols);
}

LogicalResult ReceiveOp::verifySymbolUses(SymbolTableCollection &symbols) {
  for (auto name : getValues().getAsRange<FlatSymbolRefAttr>()) {
    ValueOp value = lookup(*this, name, symbols);
    if (!value)
      return failure();
    if (value.getInput()) // receive_c1
      return withDeclaration(
          emitOpError() << name << " is the graph input \"" << *value.getInput() << "\"; only a feed writes it", value);
  }
  return verifyChannel(*this, getChannelAttr(), symbols);
}

LogicalResult TransferOp::verify() {
  const StringRef from = stringifyMemorySpace(getFrom()), to = stringifyMemorySpace(getTo());
  if (getFrom() == getTo()) // transfer_c1
    return emitOpError() << "leads from " << from << " to " << to << "; these must be two memory spaces";
  auto before = getTensor().getDefiningOp<TransferOp>();
  const bool isLoaded = isa_and_present<LoadOp>(getTensor().getDefiningOp());            // which says so itself
  if (const MemorySpace space = spaceOf(getTensor()); space != getFrom() && !isLoaded) { // transfer_c2
    InFlightDiagnostic error = emitOpError()
                               << "takes a tensor from " << from << " that lies in " << stringifyMemorySpace(space);
    if (before)
      error.attachNote(before.getLoc()) << "put there here";
    return error;
  }
  for (Operation *user : getResult().getUsers())
    if (getTo() != MemorySpace::Device && !isa<TransferOp, StoreOp>(user)) { // transfer_c3
      InFlightDiagnostic error = emitOpError() << "leaves its result in " << to << " for '" << user->getName()
                                               << "'; only a transfer or a store reads it there";
      error.attachNote(user->getLoc()) << "used here";
      return error;
    }
  return success();
}

LogicalResult CallOp::verifySymbolUses(SymbolTableCollection &symbols) {
  auto module = (*this)->getParentOfType<ModuleOp>();
  if (!module || !symbols.lookupSymbolIn<FragmentOp>(module, getFragmentAttr())) // call_c1
    return emitOpError() << getFragmentAttr() << " is not a dist.fragment";
  if (static_cast<int64_t>(getMicrobatch()) < 0) // call_c2
    return emitOpError() << "microbatch " << static_cast<int64_t>(getMicrobatch()) << " is negative";
  return success();
}
