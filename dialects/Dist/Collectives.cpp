//===- Collectives.cpp - verifiers of collectives -------------------------===//
#include "dialects/Dist/Mesh.h"

using namespace mlir;
using namespace ds::dist;

static bool isSum(CollectiveKind kind) {
  return kind == CollectiveKind::ReduceScatter || kind == CollectiveKind::AllReduce;
}

/// How many times as long `dim` is in a result: n, 1, or -n for one n-th.
static int64_t growth(CollectiveKind kind, int64_t ranks) {
  return kind == CollectiveKind::AllGather ? ranks : kind == CollectiveKind::ReduceScatter ? -ranks : 1;
}

FailureOr<SmallVector<Type>> ds::dist::resultTypes(CollectiveOpInterface op, int64_t ranks) {
  SmallVector<Type> types;
  const CollectiveKind kind = op.getKind();
  const auto dim = static_cast<int64_t>(op.getDim());
  const bool cuts = kind == CollectiveKind::ReduceScatter || kind == CollectiveKind::AllToAll;
  const bool hasDim = cuts || kind == CollectiveKind::AllGather;
  if (!hasDim && dim != 0) // collective_c2
    return op->emitOpError() << "has dim " << dim << ", and cuts and joins nothing";
  for (Value input : op.getInputs()) {
    auto type = cast<RankedTensorType>(input.getType());
    if (hasDim && (dim < 0 || dim >= type.getRank())) // collective_c2
      return op->emitOpError() << "takes " << type << ", which has no dimension " << dim;
    if (isSum(kind) && !isa<FloatType>(type.getElementType())) // collective_c2
      return op->emitOpError() << "sums " << type << "; only floats are summed";
    SmallVector<int64_t> shape(type.getShape());
    if (cuts && shape[size_t(dim)] % ranks != 0) // collective_c2
      return withMesh(op->emitOpError() << "cuts dimension " << dim << " of " << type << " into " << ranks
                                        << " slices; pad it to " << (shape[size_t(dim)] / ranks + 1) * ranks,
                      meshOf(op->getParentOfType<ModuleOp>()));
    if (const int64_t times = growth(kind, ranks); times > 1)
      shape[size_t(dim)] *= times;
    else if (times < 0)
      shape[size_t(dim)] /= -times;
    types.push_back(type.clone(shape));
  }
  return types;
}

/// collective_c6, results being of `types`.
static LogicalResult verifySharding(CollectiveOpInterface op, MeshOp mesh, ArrayRef<Type> types) {
  const bool scatters = op.getKind() == CollectiveKind::ReduceScatter || op.getKind() == CollectiveKind::AllToAll;
  std::optional<int64_t> along; // the dimension by which results are said to be sharded along `axis`
  bool same = true;             // or that they are the same
  for (const AxisPlacement &placement : op.getShardingAttr().getPlacements()) {
    if (!axisIndex(mesh, placement.axis))
      return withMesh(op->emitOpError() << "says " << op.getShardingAttr() << ", and the mesh has no axis "
                                        << placement.axis,
                      mesh);
    for (Type type : types)
      if (placement.dim && *placement.dim >= cast<RankedTensorType>(type).getRank())
        return op->emitOpError() << "says " << op.getShardingAttr() << ", and a result is " << type;
    if (placement.axis == op.getAxisAttr()) {
      same = false;
      along = placement.dim;
    }
  }
  if (scatters ? along == int64_t(op.getDim()) : same)
    return success();
  InFlightDiagnostic error = op->emitOpError() << "makes something that is ";
  if (scatters)
    error << "sharded by axis " << op.getAxisAttr() << " along dimension " << op.getDim();
  else
    error << "the same along axis " << op.getAxisAttr();
  return error << ", and says " << op.getShardingAttr();
}

/// Whether the state named `name` takes a result of `type`, as a whole or, for a scatter, as this rank's slice.
static bool takes(Operation *state, CollectiveKind kind, Type type) {
  if (auto bucket = dyn_cast_or_null<BucketOp>(state))
    return kind == CollectiveKind::ReduceScatter ? bucket.getSlice() == type
                                                 : !bucket.isSharded() && bucket.getType() == type;
  auto variable = dyn_cast_or_null<ds::train::StateOpInterface>(state);
  return variable && kind != CollectiveKind::ReduceScatter && variable.getStateType() == type;
}

/// collective_c1 to c5, but for the results; those types where there are any.
static FailureOr<SmallVector<Type>> verifyParts(CollectiveOpInterface op, SymbolTableCollection &symbols) {
  auto mesh = symbols.lookupNearestSymbolFrom<MeshOp>(op->getParentOp(), op.getMeshAttr());
  if (!mesh || !axisIndex(mesh, op.getAxisAttr())) // collective_c1
    return withMesh(op->emitOpError() << op.getMeshAttr() << " is not a dist.mesh with an axis " << op.getAxisAttr(),
                    mesh);
  FailureOr<SmallVector<Type>> types = resultTypes(op, axisSize(mesh, op.getAxisAttr()));
  if (failed(types) || (op.getShardingAttr() && failed(verifySharding(op, mesh, *types))))
    return failure();
  if (op.getAccumulate() && (!isSum(op.getKind()) || !op.getIntoAttr())) // collective_c5
    return op->emitOpError() << "accumulates; only a sum into state does";
  if (!op.getIntoAttr())
    return types;
  if (op.getIntoAttr().size() != types->size()) // collective_c4
    return op->emitOpError() << "has " << types->size() << " inputs and goes into " << op.getIntoAttr().size();
  for (auto [name, type] : llvm::zip(op.getIntoAttr().getAsRange<FlatSymbolRefAttr>(), *types)) {
    Operation *state = symbols.lookupNearestSymbolFrom(op->getParentOp(), name);
    if (takes(state, op.getKind(), type))
      continue;
    return withDeclaration(op->emitOpError() << name << " does not take " << type, state); // collective_c4
  }
  return SmallVector<Type>();
}

/// `start`: of a done.
static LogicalResult verifyResults(Operation *op, FailureOr<SmallVector<Type>> types, Operation *start = nullptr) {
  if (failed(types))
    return failure();
  if (op->getResultTypes() != TypeRange(*types)) { // collective_c3, done_c2
    InFlightDiagnostic error = op->emitOpError() << "has " << op->getNumResults() << " results";
    if (op->getNumResults() > 0)
      error << " (" << op->getResultTypes() << ")";
    error << " and must have " << types->size();
    if (!types->empty())
      error << " (" << TypeRange(*types) << ")";
    if (start)
      error.attachNote(start->getLoc()) << "begun here";
    return error;
  }
  return success();
}

static LogicalResult verifyWhole(CollectiveOpInterface op, SymbolTableCollection &symbols) {
  return verifyResults(op, verifyParts(op, symbols));
}

static LogicalResult verifyStart(CollectiveOpInterface op, SymbolTableCollection &symbols) {
  return success(succeeded(verifyParts(op, symbols)));
}

template <typename StartOp> static LogicalResult verifyDone(Operation *done, SymbolTableCollection &symbols) {
  auto start = done->getOperand(0).getDefiningOp<StartOp>();
  if (!start || start->getBlock() != done->getBlock() || !start.getToken().hasOneUse()) { // done_c1
    InFlightDiagnostic error = done->emitOpError() << "needs the token of one " << StartOp::getOperationName()
                                                   << " of the same fragment, and must be its only done";
    if (Operation *other = done->getOperand(0).getDefiningOp())
      error.attachNote(other->getLoc()) << "its token comes from here";
    return error;
  }
  return verifyResults(done, verifyParts(start, symbols), start);
}

#define DS_COLLECTIVE(NAME)                                                                                            \
  LogicalResult NAME##Op::verifySymbolUses(SymbolTableCollection &symbols) { return verifyWhole(*this, symbols); }     \
  LogicalResult NAME##StartOp::verifySymbolUses(SymbolTableCollection &symbols) {                                      \
    return verifyStart(*this, symbols);                                                                                \
  }                                                                                                                    \
  LogicalResult NAME##DoneOp::verifySymbolUses(SymbolTableCollection &symbols) {                                       \
    return verifyDone<NAME##StartOp>(*this, symbols);                                                                  \
  }
DS_COLLECTIVE(AllGather)
DS_COLLECTIVE(ReduceScatter)
DS_COLLECTIVE(AllReduce)
DS_COLLECTIVE(Broadcast)
DS_COLLECTIVE(AllToAll)
#undef DS_COLLECTIVE
