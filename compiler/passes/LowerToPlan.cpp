//===- LowerToPlan.cpp - fragments to routines of kernels on buffers --------===//
//
// Works role by role. Variables and dist.values get a buffer first; then every fragment that the role calls becomes a
// routine: one walk, in which each op of the body becomes the kernel call of KernelSelection.h and each of its results
// a buffer of scope call, unless the result is kept or stored, in which case its producer writes that buffer in place.
//
//===----------------------------------------------------------------------===//
#include "compiler/passes/KernelSelection.h"
#include "compiler/passes/Passes.h"
#include "compiler/passes/TrainStep.h"
#include "compiler/passes/VariableUses.h"
#include "dialects/Dist/Dist.h"
#include "dialects/Plan/Plan.h"
#include "dialects/Train/LocationName.h"
#include "kernels/KernelSignatures.h"

#include "llvm/ADT/SetVector.h"

namespace ds {
#define GEN_PASS_DEF_LOWERTOPLAN
#include "compiler/passes/Passes.h.inc"
} // namespace ds

using namespace mlir;
using namespace ds;

namespace {

/// Copies of an input buffer: one is read while the next is fed.
constexpr int64_t inputSlots = 2;

/// The ONNX name of a result, or the op's.
std::string nameOf(Value value) {
  std::string name = train::locationName(value.getLoc());
  return name.empty() ? value.getDefiningOp()->getName().getStringRef().str() : name;
}

/// What one command will be.
struct CommandParts {
  SmallVector<Value> buffers;
  SmallVector<int32_t> accesses;
  SmallVector<Attribute> types;
  SmallVector<int64_t> offsets;

  void add(Value buffer, plan::Access access, Type type) {
    buffers.push_back(buffer);
    accesses.push_back(int32_t(access));
    types.push_back(TypeAttr::get(type));
    offsets.push_back(0);
  }
};

/// Lowers one dist.role.
class RoleLowering {
public:
  RoleLowering(ModuleOp module, dist::RoleOp role, const LowerToPlanOptions &options)
      : symbols_(module), role_(role), options_(options), buffers_(module.getContext()),
        commands_(module.getContext()) {}

  LogicalResult run() {
    OpBuilder top(role_);
    plan_ = plan::RoleOp::create(top, role_.getLoc(), (role_.getSymName() + "_plan").str(), role_.getRanks());
    plan_.getBody().emplaceBlock();
    buffers_.setInsertionPointToStart(&plan_.getBody().front());
    plan::ArenaOp::create(buffers_, role_.getLoc(), "device", "device", IntegerAttr(), IntegerAttr());
    plan::QueueOp::create(buffers_, role_.getLoc(), "compute", plan::QueueKind::Compute);
    plan::QueueOp::create(buffers_, role_.getLoc(), "copy_in", plan::QueueKind::CopyIn);
    plan::EventOp::create(buffers_, role_.getLoc(), "input_ready");
    plan::EventOp::create(buffers_, role_.getLoc(), "input_done");
    llvm::SetVector<dist::FragmentOp> fragments = calledFragments();
    for (dist::FragmentOp fragment : fragments)
      if (failed(lowerFragment(fragment)))
        return failure();
    for (auto program : role_.getOps<dist::ProgramOp>())
      lowerProgram(program);
    const std::string name = role_.getSymName().str();
    role_.erase();
    plan_.setSymName(name);
    return success();
  }

private:
  llvm::SetVector<dist::FragmentOp> calledFragments() {
    llvm::SetVector<dist::FragmentOp> fragments;
    role_.walk([&](dist::CallOp call) { fragments.insert(symbols_.lookup<dist::FragmentOp>(call.getFragment())); });
    return fragments;
  }

  //===-- buffers -----------------------------------------------------------===//

  Value makeBuffer(StringRef name, int64_t bytes, plan::Scope scope, plan::Category category, int64_t slots = 1,
                   FlatSymbolRefAttr variable = {}) {
    return plan::BufferOp::create(
        buffers_, buffers_.getUnknownLoc(), plan::BufferType::get(buffers_.getContext()), buffers_.getStringAttr(name),
        FlatSymbolRefAttr::get(buffers_.getContext(), "device"), buffers_.getI64IntegerAttr(bytes),
        plan::ScopeAttr::get(buffers_.getContext(), scope), plan::CategoryAttr::get(buffers_.getContext(), category),
        buffers_.getI64IntegerAttr(slots), variable, IntegerAttr(), IntegerAttr(), DenseI64ArrayAttr());
  }

  /// The buffer of a variable, made at its first use.
  Value bufferOfVariable(StringAttr name) {
    Value &buffer = variables_[name];
    if (buffer)
      return buffer;
    auto variable = symbols_.lookup<train::VariableOp>(name);
    const int64_t bytes = plan::tensorBytes(variable.getType());
    switch (variable.getKind()) {
    case train::VariableKind::Gradient:
      return buffer = makeBuffer(name, bytes, plan::Scope::Step, plan::Category::Gradients);
    case train::VariableKind::Metric:
      return buffer = makeBuffer(name, bytes, plan::Scope::Step, plan::Category::Optimizer);
    default:
      return buffer = makeBuffer(name, bytes, plan::Scope::Plan, categoryOf(variable.getKind()), 1,
                                 FlatSymbolRefAttr::get(name));
    }
  }

  static plan::Category categoryOf(train::VariableKind kind) {
    if (kind == train::VariableKind::Optimizer)
      return plan::Category::Optimizer;
    return kind == train::VariableKind::Constant ? plan::Category::Constants : plan::Category::Weights;
  }

  /// The buffer of a dist.value, made at its first use.
  Value bufferOfValue(StringAttr name) {
    Value &buffer = values_[name];
    if (buffer)
      return buffer;
    auto value = symbols_.lookup<dist::ValueOp>(name);
    const int64_t bytes = plan::tensorBytes(value.getType());
    return buffer = value.getInput() ? makeBuffer(name, bytes, plan::Scope::Slot, plan::Category::Inputs, inputSlots)
                                     : makeBuffer(name, bytes, plan::Scope::Slot, plan::Category::Activations);
  }

  /// A constant that a kernel reads from memory is a variable with a literal value; equal constants share one.
  Value bufferOfConstant(ElementsAttr value, Location location) {
    StringAttr &name = constants_[value];
    if (!name) {
      OpBuilder builder(role_);
      auto source = train::LiteralSourceAttr::get(builder.getContext(), value);
      auto variable = train::VariableOp::create(builder, location, train::VariableKind::Constant,
                                                "constant::" + std::to_string(constants_.size()),
                                                cast<RankedTensorType>(value.getShapedType()), source);
      symbols_.insert(variable);
      name = variable.getSymNameAttr();
    }
    return bufferOfVariable(name);
  }

  /// Where `value` lies.
  Value bufferOf(Value value) {
    if (Value known = placed_.lookup(value))
      return known;
    Operation *op = value.getDefiningOp();
    if (auto reshape = dyn_cast<train::ReshapeOp>(op))
      return placed_[value] = bufferOf(reshape.getInput());
    if (auto read = dyn_cast<train::ReadOp>(op))
      return placed_[value] = bufferOfVariable(read.getVariableAttr().getAttr());
    if (auto take = dyn_cast<dist::TakeOp>(op))
      return placed_[value] = bufferOfValue(take.getValueAttr().getAttr());
    if (auto constant = dyn_cast<train::ConstantOp>(op))
      return placed_[value] = bufferOfConstant(constant.getValue(), op->getLoc());
    if (auto seed = dyn_cast<train::LossGradientOp>(op)) {
      auto type = cast<RankedTensorType>(value.getType());
      APFloat scale = seed.getScale();
      bool inexact;
      scale.convert(cast<FloatType>(type.getElementType()).getFloatSemantics(), APFloat::rmNearestTiesToEven, &inexact);
      return placed_[value] = bufferOfConstant(DenseElementsAttr::get(type, scale), op->getLoc());
    }
    return placed_[value] = makeBuffer(nameOf(value), plan::tensorBytes(value.getType()), plan::Scope::Call,
                                       plan::Category::Activations);
  }

  //===-- fragments ------------------------------------------------------------===//

  LogicalResult lowerFragment(dist::FragmentOp fragment) {
    buffers_.setInsertionPointToEnd(&plan_.getBody().front());
    auto routine = plan::RoutineOp::create(buffers_, fragment.getLoc(), fragment.getSymName());
    buffers_.setInsertionPoint(routine);
    commands_.setInsertionPointToStart(&routine.getBody().emplaceBlock());
    placed_.clear();
    if (failed(placeResults(fragment)))
      return failure();
    for (Operation &op : fragment.getBody().front())
      if (failed(lowerOp(&op)))
        return failure();
    return connect(fragment, routine);
  }

  /// Results that are kept or stored are written where they are wanted; reads that outlive their variable are copied.
  LogicalResult placeResults(dist::FragmentOp fragment) {
    const VariableUses uses(fragment.getBody().front());
    for (auto keep : fragment.getOps<dist::KeepOp>()) {
      Operation *producer = keep.getTensor().getDefiningOp();
      if (isa<train::ReadOp>(producer))
        copied_.insert(producer);
      else if (isView(producer))
        return keep.emitOpError() << "keeps a '" << producer->getName() << "', which is repeated where it is needed";
      if (!uses.isNamedOnce(keep.getValueAttr().getAttr()))
        return keep.emitOpError() << keep.getValueAttr() << " is taken or kept by another op of the fragment";
      if (keptTwice(keep))
        return keep.emitOpError() << "keeps a tensor that another op keeps; take it by that name";
      placed_[keep.getTensor()] = bufferOfValue(keep.getValueAttr().getAttr());
    }
    for (auto read : fragment.getOps<train::ReadOp>())
      if (uses.isReadOutlived(read) && copied_.insert(read).second)
        placed_[read] = makeBuffer(read.getVariable(), plan::tensorBytes(read.getType()), plan::Scope::Call,
                                   plan::Category::Activations);
    for (auto store : fragment.getOps<train::StoreOp>())
      placeStored(store, uses);
    return success();
  }

  /// Ops that compute nothing: their results lie where something else does.
  static bool isView(Operation *op) {
    return isa<train::ReshapeOp, train::ReadOp, train::ConstantOp, train::LossGradientOp, dist::TakeOp>(op);
  }

  static bool keptTwice(dist::KeepOp keep) {
    return llvm::count_if(keep.getTensor().getUsers(), [](Operation *user) { return isa<dist::KeepOp>(user); }) > 1;
  }

  /// In place, if no other op of the fragment sees the variable: the value is there before the store, and stays. A
  /// gradient that is computed as a matrix and stored in another shape is written in place all the same.
  void placeStored(train::StoreOp store, const VariableUses &uses) {
    Value value = store.getValue();
    if (auto reshape = value.getDefiningOp<train::ReshapeOp>())
      value = reshape.getInput();
    if (isView(value.getDefiningOp()) || placed_.contains(value) ||
        !uses.isNamedOnce(store.getVariableAttr().getAttr()))
      return;
    placed_[value] = bufferOfVariable(store.getVariableAttr().getAttr());
    elided_.insert(store);
  }

  LogicalResult lowerOp(Operation *op) {
    if (auto read = dyn_cast<train::ReadOp>(op); read && copied_.contains(op)) {
      emitKernel(selectRead(read), op);
      return success();
    }
    if (isView(op) || isa<dist::KeepOp>(op) || elided_.contains(op))
      return success();
    if (auto feed = dyn_cast<dist::FeedOp>(op)) {
      lowerFeed(feed);
      return success();
    }
    if (auto accumulate = dyn_cast<train::AccumulateOp>(op)) {
      emitKernel(selectAccumulate(accumulate), op);
      return success();
    }
    if (auto store = dyn_cast<train::StoreOp>(op)) {
      emitKernel(selectStore(store), op);
      return success();
    }
    FailureOr<KernelCall> call = selectKernel(op, symbols_);
    if (failed(call))
      return failure();
    emitKernel(*call, op);
    return success();
  }

  void emitKernel(const KernelCall &call, Operation *op) {
    CommandParts parts;
    SmallVector<kernels::TensorType> types;
    for (const KernelOperand &operand : call.operands) {
      parts.add(operand.variable ? bufferOfVariable(operand.variable) : bufferOf(operand.value), operand.access,
                operand.type);
      types.push_back({dtypeOf(operand.type), Shape(operand.type.getShape().begin(), operand.type.getShape().end())});
    }
    if (kernels::hasWorkspace(call.kernel)) {
      const kernels::WorkspaceLimits limits{int(options_.threads), options_.workspaceBytesPerThread};
      const int64_t bytes = kernels::workspaceBytes(call.kernel, types, limits);
      parts.add(makeBuffer(call.kernel + " workspace", bytes, plan::Scope::Call, plan::Category::Workspace),
                plan::Access::Scratch, RankedTensorType::get({bytes}, commands_.getIntegerType(8)));
    }
    auto reference = op->getAttrOfType<DenseI64ArrayAttr>(referenceAttribute);
    plan::KernelOp::create(commands_, op->getLoc(), parts.buffers, commands_.getDenseI32ArrayAttr(parts.accesses),
                           commands_.getArrayAttr(parts.types), commands_.getDenseI64ArrayAttr(parts.offsets),
                           FlatSymbolRefAttr::get(commands_.getContext(), "compute"), commands_.getArrayAttr({}),
                           commands_.getDenseI64ArrayAttr({}), commands_.getArrayAttr({}),
                           reference ? reference : commands_.getDenseI64ArrayAttr({}),
                           commands_.getStringAttr(call.kernel), commands_.getDictionaryAttr(call.attributes));
  }

  void lowerFeed(dist::FeedOp feed) {
    auto value = symbols_.lookup<dist::ValueOp>(feed.getValue());
    CommandParts parts;
    parts.add(bufferOfValue(value.getSymNameAttr()), plan::Access::Write, value.getType());
    plan::FeedOp::create(commands_, feed.getLoc(), parts.buffers, commands_.getDenseI32ArrayAttr(parts.accesses),
                         commands_.getArrayAttr(parts.types), commands_.getDenseI64ArrayAttr(parts.offsets),
                         FlatSymbolRefAttr::get(commands_.getContext(), "copy_in"), events({"input_done"}),
                         commands_.getDenseI64ArrayAttr({inputSlots}), commands_.getArrayAttr({}),
                         commands_.getDenseI64ArrayAttr({}), value.getInputAttr());
  }

  ArrayAttr events(ArrayRef<StringRef> names) {
    SmallVector<Attribute> symbols;
    for (StringRef name : names)
      symbols.push_back(FlatSymbolRefAttr::get(commands_.getContext(), name));
    return commands_.getArrayAttr(symbols);
  }

  bool hasInputs() {
    return llvm::any_of(cast<ModuleOp>(symbols_.getOp()).getOps<dist::ValueOp>(),
                        [](dist::ValueOp value) { return value.getInput().has_value(); });
  }

  /// The last feed signals that inputs are there; compute that takes inputs waits for it; the end of the backward frees
  /// the slot.
  LogicalResult connect(dist::FragmentOp fragment, plan::RoutineOp routine) {
    Block &body = routine.getBody().front();
    const bool isBackward = fragment.getSymName() == "backward";
    if (body.empty())
      return isBackward && hasInputs()
                 ? fragment.emitOpError("computes nothing; its end is what frees the inputs of a micro-batch")
                 : success();
    if (auto feed = dyn_cast<plan::FeedOp>(body.back()))
      feed.setSignalsAttr(events({"input_ready"}));
    const bool takesInput = llvm::any_of(fragment.getOps<dist::TakeOp>(), [&](dist::TakeOp take) {
      return symbols_.lookup<dist::ValueOp>(take.getValue()).getInput().has_value();
    });
    if (auto first = dyn_cast<plan::KernelOp>(body.front()); first && takesInput) {
      first.setWaitsAttr(events({"input_ready"}));
      first.setDelays({0});
    }
    if (auto last = dyn_cast<plan::KernelOp>(body.back()); last && isBackward)
      last.setSignalsAttr(events({"input_done"}));
    return success();
  }

  //===-- programs --------------------------------------------------------------===//

  void lowerProgram(dist::ProgramOp program) {
    Location location = program.getLoc();
    buffers_.setInsertionPointToEnd(&plan_.getBody().front());
    const std::string begin = ("begin_" + program.getSymName()).str();
    const bool hasBegin = lowerBegin(program, begin);
    auto lowered = plan::ProgramOp::create(buffers_, location, program.getSymName());
    OpBuilder builder(buffers_.getContext());
    builder.setInsertionPointToStart(&lowered.getBody().emplaceBlock());
    if (hasBegin)
      plan::CallOp::create(builder, location, begin, 0);
    llvm::DenseSet<StringAttr> written;
    for (auto call : program.getOps<dist::CallOp>()) {
      plan::CallOp::create(builder, location, call.getFragment(), call.getMicrobatch());
      symbols_.lookup<dist::FragmentOp>(call.getFragment()).walk([&](Operation *op) {
        if (auto accumulate = dyn_cast<train::AccumulateOp>(op))
          written.insert(accumulate.getVariableAttr().getAttr());
        if (auto store = dyn_cast<train::StoreOp>(op))
          written.insert(store.getVariableAttr().getAttr());
      });
    }
    for (StringRef name : {lossMetric, gradientNormMetric, learningRateMetric})
      if (auto variable = symbols_.lookup<train::VariableOp>(name);
          variable && written.contains(variable.getSymNameAttr()))
        plan::MetricOp::create(builder, location, builder.getStringAttr(name),
                               bufferOfVariable(variable.getSymNameAttr()), TypeAttr::get(variable.getType()));
  }

  /// Zeroes what the program's fragments accumulate into; false where there is nothing.
  bool lowerBegin(dist::ProgramOp program, StringRef name) {
    llvm::SetVector<StringAttr> accumulators;
    llvm::SetVector<dist::FragmentOp> fragments;
    for (auto call : program.getOps<dist::CallOp>())
      fragments.insert(symbols_.lookup<dist::FragmentOp>(call.getFragment()));
    for (dist::FragmentOp fragment : fragments)
      for (auto op : fragment.getOps<train::AccumulateOp>())
        accumulators.insert(op.getVariableAttr().getAttr());
    if (accumulators.empty())
      return false;
    auto routine = plan::RoutineOp::create(buffers_, program.getLoc(), name);
    buffers_.setInsertionPoint(routine);
    commands_.setInsertionPointToStart(&routine.getBody().emplaceBlock());
    for (StringAttr accumulator : accumulators) {
      auto variable = symbols_.lookup<train::VariableOp>(accumulator);
      CommandParts parts;
      parts.add(bufferOfVariable(accumulator), plan::Access::Write, variable.getType());
      plan::FillOp::create(commands_, variable.getLoc(), parts.buffers, commands_.getDenseI32ArrayAttr(parts.accesses),
                           commands_.getArrayAttr(parts.types), commands_.getDenseI64ArrayAttr(parts.offsets),
                           FlatSymbolRefAttr::get(commands_.getContext(), "compute"), commands_.getArrayAttr({}),
                           commands_.getDenseI64ArrayAttr({}), commands_.getArrayAttr({}),
                           commands_.getDenseI64ArrayAttr({}));
    }
    buffers_.setInsertionPointToEnd(&plan_.getBody().front());
    return true;
  }

  SymbolTable symbols_;
  dist::RoleOp role_;
  plan::RoleOp plan_;
  LowerToPlanOptions options_;
  OpBuilder buffers_;  // where buffers, routines and programs go
  OpBuilder commands_; // where commands go
  // Looked up, never iterated.
  llvm::DenseMap<StringAttr, Value> variables_, values_;
  llvm::DenseMap<Attribute, StringAttr> constants_;
  llvm::DenseMap<Value, Value> placed_;
  llvm::DenseSet<Operation *> elided_; // stores whose value is written in place
  llvm::DenseSet<Operation *> copied_; // reads that are no views
};

struct LowerToPlan : ds::impl::LowerToPlanBase<LowerToPlan> {
  using LowerToPlanBase::LowerToPlanBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    SmallVector<dist::RoleOp> roles(module.getOps<dist::RoleOp>());
    for (dist::RoleOp role : roles)
      if (failed(RoleLowering(module, role, {threads, workspaceBytesPerThread}).run()))
        return signalPassFailure();
    for (Operation &op : llvm::make_early_inc_range(*module.getBody()))
      if (isa<dist::FragmentOp, dist::ValueOp>(op)) {
        recordInput(op);
        op.erase();
      }
  }

  /// The plan's inputs, in the order of the graph's, as a module attribute: name, type, how tokens become it, values.
  void recordInput(Operation &op) {
    auto value = dyn_cast<dist::ValueOp>(op);
    if (!value || !value.getInput())
      return;
    Builder builder(&getContext());
    SmallVector<Attribute> inputs;
    if (auto before = getOperation()->getAttrOfType<ArrayAttr>("plan.inputs"))
      llvm::append_range(inputs, before);
    NamedAttrList input;
    input.set("name", value.getInputAttr());
    input.set("type", value.getTypeAttr());
    for (StringRef about : {tokensAttribute, limitAttribute, ignoredAttribute})
      if (Attribute attribute = value->getAttr(about))
        input.set(about, attribute);
    inputs.push_back(input.getDictionary(&getContext()));
    getOperation()->setAttr("plan.inputs", builder.getArrayAttr(inputs));
  }
};

} // namespace
