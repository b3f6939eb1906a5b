//===- State.cpp - verifiers of variables and of the ops that name them ----===//
#include "dialects/Train/Train.h"

using namespace mlir;
using namespace ds::train;

bool ds::train::isNarrowFloat(Type type) { return type.isBF16() || type.isF16(); }

bool ds::train::isElementType(Type type) {
  return type.isF32() || type.isF64() || isNarrowFloat(type) || type.isInteger(64) || type.isInteger(32) ||
         type.isInteger(1);
}

SmallVector<StringAttr, 3> ds::train::writtenVariables(Operation *op) {
  if (auto store = dyn_cast<StoreOp>(op))
    return {store.getVariableAttr().getAttr()};
  if (auto accumulate = dyn_cast<AccumulateOp>(op))
    return {accumulate.getVariableAttr().getAttr()};
  if (auto average = dyn_cast<UpdateAverageOp>(op))
    return {average.getVariableAttr().getAttr()};
  if (auto increment = dyn_cast<IncrementOp>(op))
    return {increment.getVariableAttr().getAttr()};
  if (auto adamw = dyn_cast<AdamWOp>(op))
    return {adamw.getParameterAttr().getAttr(), adamw.getFirstMomentAttr().getAttr(),
            adamw.getSecondMomentAttr().getAttr()};
  if (auto adagrad = dyn_cast<AdagradOp>(op))
    return {adagrad.getParameterAttr().getAttr(), adagrad.getSquareSumAttr().getAttr()};
  if (auto lion = dyn_cast<LionOp>(op))
    return {lion.getParameterAttr().getAttr(), lion.getFirstMomentAttr().getAttr()};
  if (auto lamb = dyn_cast<LambOp>(op))
    return {lamb.getParameterAttr().getAttr(), lamb.getFirstMomentAttr().getAttr(),
            lamb.getSecondMomentAttr().getAttr()};
  if (auto sgd = dyn_cast<SgdOp>(op)) {
    SmallVector<StringAttr, 3> names{sgd.getParameterAttr().getAttr()};
    if (FlatSymbolRefAttr buffer = sgd.getMomentumBufferAttr())
      names.push_back(buffer.getAttr());
    return names;
  }
  return {};
}

/// Whether tensors of shape `piece`, side by side, make one of shape `whole`, and more than one are needed.
static bool isPieceOf(ArrayRef<int64_t> piece, ArrayRef<int64_t> whole) {
  return piece.size() == whole.size() && piece != whole && llvm::all_of(llvm::zip(piece, whole), [](auto sizes) {
           const auto [part, all] = sizes;
           return part > 0 && all > 0 && all % part == 0;
         });
}

LogicalResult VariableOp::verify() {
  auto type = dyn_cast<RankedTensorType>(getType());
  if (!type || !type.hasStaticShape() || !isElementType(type.getElementType())) // variable_c1
    return emitOpError("must be a static tensor of f32, f64, bf16, f16, i64, i32 or i1, not ") << getType();
  if (getWhole() && !isPieceOf(type.getShape(), *getWhole())) // variable_c7
    return emitOpError() << "of " << type << " is no piece of a whole of [" << *getWhole()
                         << "]: it needs a multiple of each size, and a larger one";
  const bool transient = getKind() == VariableKind::Gradient || getKind() == VariableKind::Metric;
  if (transient == getSource().has_value()) // variable_c2
    return emitOpError() << (transient ? "gradients and metrics start at zero and have no source"
                                       : "must say with `from` where its first value comes from");
  if (auto file = dyn_cast_if_present<FileSourceAttr>(getSource().value_or(Attribute()))) {
    const StringRef stored = file.getDtype();
    const int64_t own = type.getElementTypeBitWidth(), bits = stored.empty() ? own : stored == "F32" ? 32 : 16;
    const bool rounds = isNarrowFloat(type.getElementType());
    if (!stored.empty() && (!isa<FloatType>(type.getElementType()) || (bits >= own && !rounds) ||
                            (stored != "F32" && stored != "BF16" && stored != "F16"))) // variable_c6
      return emitOpError() << "elements stored as '" << stored << "' are not widened to " << type.getElementType();
    const int64_t bytes = getWholeType().getNumElements() * (bits == 1 ? 1 : bits / 8);
    if (file.getLength() != bytes || file.getOffset() < 0) // variable_c3
      return emitOpError() << "file range of " << file.getLength() << " bytes at " << file.getOffset() << " is not the "
                           << bytes << " bytes of " << getWholeType();
  }
  if (getTrainable() && (getKind() != VariableKind::Parameter || !isa<FloatType>(type.getElementType()))) // variable_c4
    return emitOpError("only a parameter of a float type can be trainable");
  return success();
}

RankedTensorType VariableOp::getStateType() { return getTensorType(); }

RankedTensorType VariableOp::getWholeType() {
  return getWhole() ? getTensorType().clone(*getWhole()) : getTensorType();
}

/// The state that `name` refers to. The reference program, a nested module, names the variables around it.
static StateOpInterface find(Operation *op, FlatSymbolRefAttr name, SymbolTableCollection &symbols) {
  for (; op; op = op->getParentOp())
    if (op->hasTrait<OpTrait::SymbolTable>())
      if (auto state = dyn_cast_or_null<StateOpInterface>(symbols.lookupSymbolIn(op, name)))
        return state;
  return {};
}

/// The type that `op` sees of a state: the reference program, which no rank runs, that of the whole.
static RankedTensorType typeSeenBy(Operation *op, StateOpInterface state) {
  auto variable = dyn_cast<VariableOp>(state.getOperation());
  const bool isReference = op->getParentOfType<ModuleOp>() != state->getParentOfType<ModuleOp>();
  return variable && isReference ? variable.getWholeType() : state.getStateType();
}

/// The state that `name` refers to, of type `type` unless null; reports on `op` otherwise.
static StateOpInterface lookup(Operation *op, FlatSymbolRefAttr name, SymbolTableCollection &symbols, Type type = {}) {
  StateOpInterface state = find(op, name, symbols);
  if (!state) {
    op->emitOpError() << name << " is not a train.variable";
    return {};
  }
  if (const RankedTensorType seen = typeSeenBy(op, state); type && seen != type) {
    InFlightDiagnostic error = op->emitOpError() << name << " is " << seen << ", not " << type;
    error.attachNote(state.getLoc()) << "declared here";
    return {};
  }
  return state;
}

LogicalResult ReadOp::verifySymbolUses(SymbolTableCollection &symbols) { // read_c1
  return success(bool(lookup(*this, getVariableAttr(), symbols, getResult().getType())));
}

LogicalResult StoreOp::verifySymbolUses(SymbolTableCollection &symbols) { // store_c1
  return success(bool(lookup(*this, getVariableAttr(), symbols, getValue().getType())));
}

LogicalResult AccumulateOp::verifySymbolUses(SymbolTableCollection &symbols) {
  StateOpInterface state = lookup(*this, getVariableAttr(), symbols, getValue().getType());
  if (!state)
    return failure();
  auto variable = dyn_cast<VariableOp>(state.getOperation()); // null: a bucket, whose members know what they are
  if (variable && variable.getKind() != VariableKind::Gradient &&
      variable.getKind() != VariableKind::Metric) // accumulate_c1
    return emitOpError() << getVariableAttr() << " is a " << stringifyVariableKind(variable.getKind())
                         << "; only gradients and metrics accumulate";
  return success();
}

LogicalResult UpdateAverageOp::verify() {
  const double momentum = getMomentum().convertToDouble();
  if (!(momentum >= 0 && momentum <= 1)) // update_average_c2
    return emitOpError() << "momentum " << momentum << " must be at least 0 and at most 1";
  return success();
}

LogicalResult UpdateAverageOp::verifySymbolUses(SymbolTableCollection &symbols) {
  StateOpInterface state = lookup(*this, getVariableAttr(), symbols, getValue().getType());
  if (!state)
    return failure();
  auto variable = dyn_cast<VariableOp>(state.getOperation());
  if (!variable) // update_average_c1
    return emitOpError() << getVariableAttr() << " is no variable; only buffers hold running averages";
  if (variable.getKind() != VariableKind::Buffer) // update_average_c1
    return emitOpError() << getVariableAttr() << " is a " << stringifyVariableKind(variable.getKind())
                         << "; only buffers hold running averages";
  return success();
}

LogicalResult IncrementOp::verifySymbolUses(SymbolTableCollection &symbols) { // increment_c1
  auto scalar = RankedTensorType::get({}, IntegerType::get(getContext(), 64));
  return success(bool(lookup(*this, getVariableAttr(), symbols, scalar)));
}

/// Whether gradients of a parameter of type `parameter` may be summed in `type`: its own, or one of 16 bits.
static bool isSumOf(RankedTensorType type, RankedTensorType parameter) {
  return type == parameter || (type.getShape() == parameter.getShape() && isNarrowFloat(type.getElementType()) &&
                               parameter.getElementType().isF32());
}

/// Whether an optimizer may keep `type` for a parameter of type `parameter`: its own, or f32 where that has 16 bits.
static bool isMomentOf(RankedTensorType type, RankedTensorType parameter) {
  return type == parameter || type == statisticsType(parameter);
}

LogicalResult VariableOp::verifySymbolUses(SymbolTableCollection &symbols) {
  if (!getOf())
    return success();
  if (getKind() != VariableKind::Gradient && getKind() != VariableKind::Optimizer) // variable_c5
    return emitOpError() << "is a " << stringifyVariableKind(getKind())
                         << "; only gradients and optimizer state are of a parameter";
  auto parameter = symbols.lookupNearestSymbolFrom<VariableOp>((*this)->getParentOp(), getOfAttr());
  if (!parameter) // variable_c5
    return emitOpError() << getOfAttr() << " is not a train.variable";
  const RankedTensorType own = getTensorType(), type = parameter.getTensorType();
  if (parameter.getKind() == VariableKind::Parameter && (isSumOf(own, type) || isMomentOf(own, type))) {
    if (getWholeType().getShape() == parameter.getWholeType().getShape())
      return success();
    InFlightDiagnostic error = emitOpError()
                               << "is a piece of [" << getWholeType().getShape() << "], and " << getOfAttr()
                               << ", which it is of, of [" << parameter.getWholeType().getShape() << "]";
    error.attachNote(parameter.getLoc()) << "declared here";
    return error;
  }
  InFlightDiagnostic error = emitOpError() << "of " << getType() << " is of " << getOfAttr() // variable_c5
                                           << ", which must be a parameter of that type";
  error.attachNote(parameter.getLoc()) << "declared here";
  return error;
}

/// Whether an update's parameter is a float, its state is of one type that may be kept for it, and its gradient of one
/// that may be summed.
template <typename OpTy>
static LogicalResult verifyUpdate(OpTy op, ArrayRef<FlatSymbolRefAttr> states, SymbolTableCollection &symbols) {
  StateOpInterface parameter = lookup(op, op.getParameterAttr(), symbols);
  StateOpInterface gradient = parameter ? lookup(op, op.getGradientAttr(), symbols) : parameter;
  if (!gradient)
    return failure();
  const RankedTensorType type = typeSeenBy(op, parameter);
  if (!isa<FloatType>(type.getElementType()))
    return op->emitOpError() << op.getParameterAttr() << " is " << type << "; only floats are updated";
  if (!isSumOf(typeSeenBy(op, gradient), type) && !lookup(op, op.getGradientAttr(), symbols, type))
    return failure();
  RankedTensorType kept = type;
  for (FlatSymbolRefAttr name : states) {
    StateOpInterface state = lookup(op, name, symbols);
    if (state && name == states.front() && isMomentOf(typeSeenBy(op, state), type))
      kept = typeSeenBy(op, state);
    if (!state || !lookup(op, name, symbols, kept))
      return failure();
  }
  return success();
}

LogicalResult AdamWOp::verifySymbolUses(SymbolTableCollection &symbols) { // adamw_c1
  return verifyUpdate(*this, {getFirstMomentAttr(), getSecondMomentAttr()}, symbols);
}

LogicalResult SgdOp::verifySymbolUses(SymbolTableCollection &symbols) {
  const bool has = getMomentumBufferAttr() != nullptr, wants = !getMomentum().isZero();
  if (has != wants) // sgd_c2
    return emitOpError() << (wants ? "momentum needs a momentum buffer"
                                   : "without momentum there is no momentum buffer");
  SmallVector<FlatSymbolRefAttr> states;
  if (has)
    states.push_back(getMomentumBufferAttr());
  return verifyUpdate(*this, states, symbols); // sgd_c1
}

LogicalResult AdagradOp::verifySymbolUses(SymbolTableCollection &symbols) { // adagrad_c1
  return verifyUpdate(*this, {getSquareSumAttr()}, symbols);
}

LogicalResult LionOp::verifySymbolUses(SymbolTableCollection &symbols) { // lion_c1
  return verifyUpdate(*this, {getFirstMomentAttr()}, symbols);
}

LogicalResult LambOp::verifySymbolUses(SymbolTableCollection &symbols) { // lamb_c1
  return verifyUpdate(*this, {getFirstMomentAttr(), getSecondMomentAttr()}, symbols);
}

LogicalResult LambOp::verify() {
  const double least = getMinCoeff().convertToDouble(), most = getMaxCoeff().convertToDouble();
  if (!(least >= 0 && least <= most)) // lamb_c2
    return emitOpError() << "min_coeff " << least << " must be at least 0 and at most max_coeff " << most;
  return success();
}
