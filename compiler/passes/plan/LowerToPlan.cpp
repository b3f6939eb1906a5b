//===- LowerToPlan.cpp - fragments to routines of kernels on buffers --------===//
//
// Works role by role. Every fragment that the role calls becomes a routine: one walk, in which each op of the body
// becomes the kernel call of KernelSelection.h or a collective, and each of its results a buffer of scope call, unless
// the result is kept, stored or packed, in which case its producer writes it where it is wanted. Where state lies:
// Placement.h; how commands are written and ordered: CommandWriter.h.
//
//===----------------------------------------------------------------------===//
#include "compiler/analysis/InFlight.h"
#include "compiler/analysis/KernelSelection.h"
#include "compiler/analysis/TrainStep.h"
#include "compiler/analysis/VariableUses.h"
#include "compiler/passes/plan/CommandWriter.h"
#include "compiler/passes/plan/LowerPrograms.h"
#include "compiler/passes/plan/OrderMessages.h"
#include "compiler/passes/plan/Passes.h"
#include "compiler/passes/plan/Placement.h"
#include "dialects/Dist/Mesh.h"
#include "dialects/Plan/Plan.h"
#include "dialects/Train/LocationName.h"
#include "kernels/KernelSignatures.h"

#include "llvm/ADT/SetVector.h"

namespace ds {
#define GEN_PASS_DEF_LOWERTOPLAN
#include "compiler/passes/plan/Passes.h.inc"
} // namespace ds

using namespace mlir;
using namespace ds;

namespace {

/// Bytes that a sum of `input` into `target` wants of its scratch. Ranks on CPUs receive messages into it. NCCL needs
/// none, but where a target is added to, since it overwrites: then the sum lies there first.
int64_t scratchBytes(Type input, Type target, bool accumulates, kernels::Device device) {
  constexpr int64_t mostOnCpu = 4 << 20, mostOnCuda = 64 << 20; // a larger sum is taken in pieces
  if (device == kernels::Device::Cpu)
    return std::min(plan::tensorBytes(input), mostOnCpu);
  return accumulates ? std::min(plan::tensorBytes(target), mostOnCuda) : 0;
}

/// The ONNX name of a result, or the op's.
std::string nameOf(Value value) {
  std::string name = train::locationName(value.getLoc());
  return name.empty() ? value.getDefiningOp()->getName().getStringRef().str() : name;
}

/// Lowers one dist.role.
class RoleLowering {
public:
  RoleLowering(ModuleOp module, dist::RoleOp role, const LowerToPlanOptions &options)
      : symbols_(module), role_(role), options_(options), buffers_(module.getContext()), inFlight_(role, symbols_),
        placement_(symbols_, role, buffers_, inFlight_), plan_(makeRole(role)),
        writer_(symbols_, plan_, buffers_, placement_) {}

  LogicalResult run() {
    buffers_.setInsertionPointToStart(&plan_.getBody().front());
    for (plan::MemorySpace space : spacesUsed())
      plan::ArenaOp::create(buffers_, role_.getLoc(), stringifyMemorySpace(space), space, IntegerAttr(), IntegerAttr());
    plan::QueueOp::create(buffers_, role_.getLoc(), "compute", plan::QueueKind::Compute);
    plan::QueueOp::create(buffers_, role_.getLoc(), "copy_in", plan::QueueKind::CopyIn);
    if (isAsynchronous())
      plan::QueueOp::create(buffers_, role_.getLoc(), "collective", plan::QueueKind::Collective);
    for (const auto &[op, arrival] : inFlight_.arrivals()) {
      if (auto receive = dyn_cast<dist::ReceiveOp>(op))
        plan::QueueOp::create(buffers_, op->getLoc(), receive.getChannel(), plan::QueueKind::Message);
      plan::EventOp::create(buffers_, op->getLoc(), arrival.ready);
      plan::EventOp::create(buffers_, op->getLoc(), arrival.freed);
    }
    for (const auto &[op, departure] : inFlight_.departures()) {
      plan::QueueOp::create(buffers_, op->getLoc(), cast<dist::SendOp>(op).getChannel(), plan::QueueKind::Message);
      plan::EventOp::create(buffers_, op->getLoc(), departure.sent);
    }
    int64_t microbatches = 1; // of the longest program
    role_.walk([&](dist::CallOp call) { microbatches = std::max(microbatches, int64_t(call.getMicrobatch()) + 1); });
    OrderMessages order(inFlight_, placement_, writer_, microbatches);
    llvm::SetVector<dist::FragmentOp> fragments = calledFragments();
    for (dist::FragmentOp fragment : fragments)
      for (auto take : fragment.getOps<dist::LoadOp>())
        ++takes_[take.getValueAttr().getAttr()];
    for (dist::FragmentOp fragment : fragments)
      if (failed(lowerFragment(fragment, order)))
        return failure();
    for (auto program : role_.getOps<dist::ProgramOp>())
      LowerPrograms(symbols_, plan_, buffers_, placement_, writer_).lower(program);
    const std::string name = role_.getSymName().str();
    role_.erase();
    plan_.setSymName(name);
    return success();
  }

private:
  static plan::RoleOp makeRole(dist::RoleOp role) {
    OpBuilder builder(role);
    auto made = plan::RoleOp::create(builder, role.getLoc(), (role.getSymName() + "_plan").str(), role.getRanks());
    made.getBody().emplaceBlock();
    return made;
  }

  /// Device memory, and what the role's fragments transfer to.
  SmallVector<plan::MemorySpace> spacesUsed() {
    llvm::SmallDenseSet<plan::MemorySpace> used{plan::MemorySpace::Device};
    for (dist::FragmentOp fragment : calledFragments())
      for (auto transfer : fragment.getOps<dist::TransferOp>())
        used.insert(plan::MemorySpace(transfer.getTo()));
    SmallVector<plan::MemorySpace> spaces{plan::MemorySpace::Device, plan::MemorySpace::Host, plan::MemorySpace::Nvme};
    llvm::erase_if(spaces, [&](plan::MemorySpace space) { return !used.contains(space); });
    return spaces;
  }

  /// Whether some collective has a start and a done.
  bool isAsynchronous() {
    return role_->getParentOfType<ModuleOp>()
        .walk([](Operation *op) { return isDone(op) ? WalkResult::interrupt() : WalkResult::advance(); })
        .wasInterrupted();
  }
  static bool isDone(Operation *op) {
    return op->getNumOperands() == 1 && isa<dist::TokenType>(op->getOperand(0).getType());
  }

  llvm::SetVector<dist::FragmentOp> calledFragments() {
    llvm::SetVector<dist::FragmentOp> fragments;
    role_.walk([&](dist::CallOp call) { fragments.insert(symbols_.lookup<dist::FragmentOp>(call.getFragment())); });
    return fragments;
  }

  //===-- places ------------------------------------------------------------===//

  /// Where `value` lies.
  Place placeOf(Value value) {
    if (Place known = placed_.lookup(value))
      return known;
    Operation *op = value.getDefiningOp();
    if (auto reshape = dyn_cast<train::ReshapeOp>(op))
      return placed_[value] = placeOf(reshape.getInput());
    if (auto view = dyn_cast<dist::ViewOp>(op)) {
      const int64_t element = cast<RankedTensorType>(value.getType()).getElementTypeBitWidth() / 8;
      return placed_[value] = placeOf(view.getInput()).at(int64_t(view.getOffset()) * element);
    }
    if (auto read = dyn_cast<train::ReadOp>(op))
      return placed_[value] = placement_.ofState(read.getVariableAttr().getAttr());
    if (auto read = dyn_cast<dist::ReadWholeOp>(op))
      return placed_[value] = placement_.ofWhole(symbols_.lookup<dist::BucketOp>(read.getBucket()));
    if (auto take = dyn_cast<dist::LoadOp>(op))
      return placed_[value] = placement_.ofValue(take.getValueAttr().getAttr());
    if (auto constant = dyn_cast<train::ConstantOp>(op))
      return placed_[value] = placement_.ofConstant(constant.getValue(), op->getLoc());
    if (auto seed = dyn_cast<train::LossGradientOp>(op)) {
      auto type = cast<RankedTensorType>(value.getType());
      APFloat scale = seed.getScale();
      bool inexact;
      scale.convert(cast<FloatType>(type.getElementType()).getFloatSemantics(), APFloat::rmNearestTiesToEven, &inexact);
      return placed_[value] = placement_.ofConstant(DenseElementsAttr::get(type, scale), op->getLoc());
    }
    if (auto transfer = dyn_cast<dist::TransferOp>(op))
      return placed_[value] = {placement_.make(plan::MemorySpace(transfer.getTo()), nameOf(value),
                                               plan::tensorBytes(value.getType()), plan::Scope::Call,
                                               plan::Category::Activations),
                               0, 0};
    const bool whole = isa<dist::PackOp, dist::CollectiveOpInterface>(op) || isDone(op);
    Value buffer = placement_.make(nameOf(value), plan::tensorBytes(value.getType()), plan::Scope::Call,
                                   whole ? plan::Category::Communication : plan::Category::Activations);
    return placed_[value] = {buffer, 0, 0};
  }

  //===-- fragments ------------------------------------------------------------===//

  LogicalResult lowerFragment(dist::FragmentOp fragment, OrderMessages &order) {
    buffers_.setInsertionPointToEnd(&plan_.getBody().front());
    auto routine = plan::RoutineOp::create(buffers_, fragment.getLoc(), fragment.getSymNameAttr(),
                                           plan::Phase(fragment.getPhase()), fragment.getStageAttr());
    buffers_.setInsertionPoint(routine);
    writer_.beginRoutine(routine);
    placed_.clear();
    if (failed(placeResults(fragment)))
      return failure();
    for (Operation &op : fragment.getBody().front())
      if (failed(lowerOp(&op)))
        return failure();
    writer_.endRoutine(routine);
    order.connect(fragment, routine);
    return success();
  }

  /// Results that are kept or stored are written where they are wanted; reads that outlive their variable are copied.
  LogicalResult placeResults(dist::FragmentOp fragment) {
    const VariableUses uses(fragment.getBody().front());
    for (auto keep : fragment.getOps<dist::StoreOp>()) {
      Operation *producer = keep.getTensor().getDefiningOp();
      if (isa<train::ReadOp>(producer))
        copied_.insert(producer);
      else if (isView(producer))
        return keep.emitOpError() << "keeps a '" << producer->getName() << "', which is repeated where it is needed";
      if (!uses.isNamedOnce(keep.getValueAttr().getAttr()))
        return keep.emitOpError() << keep.getValueAttr() << " is taken or kept by another op of the fragment";
      if (keptTwice(keep))
        return keep.emitOpError() << "keeps a tensor that another op keeps; take it by that name";
      placed_[keep.getTensor()] = placement_.ofValue(keep.getValueAttr().getAttr());
    }
    for (auto read : fragment.getOps<train::ReadOp>())
      if (uses.isReadOutlived(read) && copied_.insert(read).second)
        placed_[read] = {placement_.make(read.getVariable(), plan::tensorBytes(read.getType()), plan::Scope::Call,
                                         plan::Category::Activations),
                         0, 0};
    for (auto pack : fragment.getOps<dist::PackOp>())
      placePacked(pack);
    for (auto store : fragment.getOps<train::StoreOp>())
      placeStored(store, uses);
    for (auto gradient : fragment.getOps<train::CrossEntropyGradOp>())
      placeOverLogits(gradient);
    return success();
  }

  /// The gradient of the logits, often the largest tensors of a step, takes their bytes if it reads them last.
  void placeOverLogits(train::CrossEntropyGradOp gradient) {
    Value logits = gradient.getLogits();
    SmallVector<Value> views{logits};
    for (; logits.getDefiningOp<train::ReshapeOp>(); views.push_back(logits))
      logits = logits.getDefiningOp<train::ReshapeOp>().getInput();
    auto take = logits.getDefiningOp<dist::LoadOp>();
    if (!take || placed_.contains(gradient.getResult()) || takes_[take.getValueAttr().getAttr()] > 1 ||
        symbols_.lookup<dist::ValueOp>(take.getValue()).getInput())
      return;
    for (Value view : views)
      for (Operation *user : view.getUsers())
        if (user != gradient && !(isa<train::ReshapeOp>(user) && llvm::is_contained(views, user->getResult(0))))
          return;
    placed_[gradient.getResult()] = placement_.ofValue(take.getValueAttr().getAttr());
  }

  /// Ops that compute nothing: their results lie where something else does.
  static bool isView(Operation *op) {
    return isa<train::ReshapeOp, train::ReadOp, train::ConstantOp, train::LossGradientOp, dist::LoadOp, dist::ViewOp,
               dist::ReadWholeOp>(op);
  }

  static bool keptTwice(dist::StoreOp keep) {
    return llvm::count_if(keep.getTensor().getUsers(), [](Operation *user) { return isa<dist::StoreOp>(user); }) > 1;
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
    placed_[value] = placement_.ofState(store.getVariableAttr().getAttr());
    elided_.insert(store);
  }

  /// Who computes what is packed writes it there, if nobody else wants it elsewhere; else it is copied.
  void placePacked(dist::PackOp pack) {
    const Place whole = placeOf(pack.getResult());
    const int64_t element = cast<RankedTensorType>(pack.getType()).getElementTypeBitWidth() / 8;
    for (auto [input, offset] : llvm::zip(pack.getInputs(), pack.getOffsets())) {
      Value value = input;
      while (auto reshape = value.getDefiningOp<train::ReshapeOp>())
        value = reshape.getInput();
      if (!isView(value.getDefiningOp()) && !placed_.contains(value))
        placed_[value] = whole.at(offset * element);
    }
  }

  LogicalResult lowerOp(Operation *op) {
    if (auto read = dyn_cast<train::ReadOp>(op); read && copied_.contains(op)) {
      emitKernel(selectRead(read), op);
      return success();
    }
    if (isView(op) || isa<dist::StoreOp>(op) || elided_.contains(op))
      return success();
    if (auto feed = dyn_cast<dist::FeedOp>(op)) {
      auto value = symbols_.lookup<dist::ValueOp>(feed.getValue());
      const Arrival &arrival = *inFlight_.arrivalOf(value.getSymNameAttr());
      writer_.feed(*value.getInput(), placement_.ofValue(value.getSymNameAttr()), value.getType(), arrival,
                   op->getLoc());
      return success();
    }
    if (auto receive = dyn_cast<dist::ReceiveOp>(op)) {
      CommandParts parts;
      for (auto name : receive.getValues().getAsRange<FlatSymbolRefAttr>())
        parts.add(placement_.ofValue(name.getAttr()), plan::Access::Write,
                  symbols_.lookup<dist::ValueOp>(name.getAttr()).getType());
      writer_.receive(receive, parts, inFlight_.arrivals().find(op)->second);
      return success();
    }
    if (auto send = dyn_cast<dist::SendOp>(op)) {
      CommandParts parts;
      for (Value tensor : send.getTensors())
        parts.add(placeOf(tensor), plan::Access::Read, tensor.getType());
      writer_.send(send, parts, inFlight_.departures().find(op)->second, inFlight_.sentBefore(send));
      return success();
    }
    if (auto transfer = dyn_cast<dist::TransferOp>(op)) {
      writer_.copy(placeOf(transfer.getTensor()), placeOf(transfer.getResult()), transfer.getType(), op->getLoc());
      return success();
    }
    if (auto pack = dyn_cast<dist::PackOp>(op)) {
      lowerPack(pack);
      return success();
    }
    if (auto collective = dyn_cast<dist::CollectiveOpInterface>(op)) {
      if (collective.getDim() != 0)
        return op->emitOpError() << "cuts or joins dimension " << collective.getDim()
                                 << "; a plan's slices lie in one piece, which those of dimension 0 do";
      if (op->getNumResults() == 1 && isa<dist::TokenType>(op->getResult(0).getType()))
        writer_.start(collective, partsOf(collective, (*op->getUsers().begin())->getResults()));
      else
        writer_.collective(collective, partsOf(collective, op->getResults()));
      return success();
    }
    if (isDone(op)) {
      writer_.done(op->getOperand(0));
      return success();
    }
    if (auto accumulate = dyn_cast<train::AccumulateOp>(op)) {
      emitKernel(selectAccumulate(accumulate), op);
      return success();
    }
    if (auto average = dyn_cast<train::UpdateAverageOp>(op)) {
      emitKernel(selectUpdateAverage(average), op);
      return success();
    }
    if (auto store = dyn_cast<train::StoreOp>(op)) {
      emitKernel(selectStore(store), op);
      return success();
    }
    FailureOr<KernelCall> call = selectKernel(op, symbols_, {options_.threads, options_.device, options_.tf32});
    if (failed(call))
      return failure();
    emitKernel(*call, op);
    return success();
  }

  /// `op` by `call`; its results go to `targets` where there are any.
  void emitKernel(const KernelCall &call, Operation *op, ArrayRef<Place> targets = {}) {
    CommandParts parts;
    SmallVector<kernels::TensorType> tensors;
    for (const KernelOperand &operand : call.operands) {
      if (operand.access == plan::Access::Write && !targets.empty()) {
        parts.add(targets.front(), operand.access, operand.type);
        targets = targets.drop_front();
      } else {
        parts.add(operand.variable ? placement_.ofState(operand.variable) : placeOf(operand.value), operand.access,
                  operand.type);
      }
      tensors.push_back({dtypeOf(operand.type), Shape(operand.type.getShape().begin(), operand.type.getShape().end())});
    }
    if (kernels::hasWorkspace(call.kernel, options_.device)) {
      const kernels::WorkspaceLimits limits{int(options_.threads), options_.workspaceBytesPerThread, options_.device};
      const int64_t bytes = kernels::workspaceBytes(call.kernel, tensors, limits);
      parts.add(
          {placement_.make(call.kernel + " workspace", bytes, plan::Scope::Call, plan::Category::Workspace), 0, 0},
          plan::Access::Scratch, RankedTensorType::get({bytes}, buffers_.getIntegerType(8)));
    }
    writer_.kernel(call, parts, op);
  }

  /// Zeroes what lies between the inputs, and copies those that lie elsewhere.
  void lowerPack(dist::PackOp pack) {
    const Place whole = placeOf(pack.getResult());
    auto type = cast<RankedTensorType>(pack.getType());
    const int64_t element = type.getElementTypeBitWidth() / 8;
    int64_t end = 0;
    const auto zero = [&](int64_t begin) {
      if (begin > end)
        writer_.fill(whole.at(end * element), type.clone({begin - end}), pack.getLoc());
    };
    for (auto [input, offset] : llvm::zip(pack.getInputs(), pack.getOffsets())) {
      zero(offset);
      end = offset + cast<RankedTensorType>(input.getType()).getNumElements();
      if (placeOf(input) != whole.at(offset * element))
        emitKernel(selectCopy(input), pack, {whole.at(offset * element)});
    }
    zero(type.getNumElements());
  }

  /// Where part `index` of a collective puts its result.
  Place targetOf(dist::CollectiveOpInterface op, unsigned index, ValueRange results) {
    if (!op.getIntoAttr())
      return placeOf(results[index]);
    auto name = cast<FlatSymbolRefAttr>(op.getIntoAttr()[index]).getAttr();
    auto bucket = symbols_.lookup<dist::BucketOp>(name);
    return bucket && op.getKind() != dist::CollectiveKind::ReduceScatter ? placement_.ofWhole(bucket)
                                                                         : placement_.ofState(name);
  }

  /// Operands of plan.collective: source, target and, for sums, scratch of every part. Parts run in order and share it.
  CommandParts partsOf(dist::CollectiveOpInterface op, ValueRange results) {
    auto mesh = symbols_.lookup<dist::MeshOp>(op.getMeshAttr().getAttr());
    const int64_t ranks = dist::axisSize(mesh, op.getAxisAttr());
    const bool sums =
        op.getKind() == dist::CollectiveKind::ReduceScatter || op.getKind() == dist::CollectiveKind::AllReduce;
    const FailureOr<SmallVector<Type>> targets = dist::resultTypes(op, ranks);
    int64_t bytes = 0;
    for (auto [input, target] : llvm::zip(op.getInputs(), *targets)) {
      const int64_t element = cast<RankedTensorType>(input.getType()).getElementTypeBitWidth() / 8;
      const int64_t wanted = scratchBytes(input.getType(), target, op.getAccumulate(), options_.device);
      bytes = std::max<int64_t>({bytes, ranks * element, int64_t(llvm::alignTo(wanted, ranks * element))});
    }
    const Place scratch{
        sums ? placement_.make("messages", bytes, plan::Scope::Call, plan::Category::Communication) : Value(), 0, 0};
    CommandParts parts;
    for (auto [index, input] : llvm::enumerate(op.getInputs())) {
      parts.add(placeOf(input), plan::Access::Read, input.getType());
      parts.add(targetOf(op, index, results), op.getAccumulate() ? plan::Access::ReadWrite : plan::Access::Write,
                (*targets)[index]);
      if (sums)
        parts.add(scratch, plan::Access::Scratch, RankedTensorType::get({bytes}, buffers_.getIntegerType(8)));
    }
    return parts;
  }

  SymbolTable symbols_;
  dist::RoleOp role_;
  LowerToPlanOptions options_;
  OpBuilder buffers_; // where buffers, events, routines and programs go
  InFlight inFlight_;
  Placement placement_;
  plan::RoleOp plan_;
  CommandWriter writer_;
  // Looked up, never iterated.
  llvm::DenseMap<Value, Place> placed_;
  llvm::DenseMap<StringAttr, int64_t> takes_; // of a dist.value, in all fragments
  llvm::DenseSet<Operation *> elided_;        // stores whose value is written in place
  llvm::DenseSet<Operation *> copied_;        // reads that are no views
};

struct LowerToPlan : ds::impl::LowerToPlanBase<LowerToPlan> {
  using LowerToPlanBase::LowerToPlanBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    noteOrderOfSums();
    lowerChannels();
    lowerInputs();
    SmallVector<dist::RoleOp> roles(module.getOps<dist::RoleOp>());
    for (dist::RoleOp role : roles)
      if (failed(RoleLowering(module, role, {device, tf32, threads, workspaceBytesPerThread}).run()))
        return signalPassFailure();
    for (Operation &op : llvm::make_early_inc_range(*module.getBody()))
      if (isa<dist::FragmentOp, dist::ValueOp>(op))
        op.erase();
  }

  /// NCCL adds up in an order of its own.
  void noteOrderOfSums() {
    if (device != kernels::Device::Cuda)
      return;
    const SymbolTable symbols(getOperation());
    getOperation().walk([&](dist::CollectiveOpInterface op) {
      const dist::CollectiveKind kind = op.getKind();
      auto mesh = symbols.lookup<dist::MeshOp>(op.getMeshAttr().getAttr());
      if ((kind == dist::CollectiveKind::ReduceScatter || kind == dist::CollectiveKind::AllReduce) &&
          dist::axisSize(mesh, op.getAxisAttr()) > 1)
        train::raiseNumerics(getOperation(), train::Numerics::Reassociated);
    });
  }

  /// Channels keep their names.
  void lowerChannels() {
    for (auto channel : llvm::make_early_inc_range(getOperation().getOps<dist::ChannelOp>())) {
      const std::optional<int64_t> axis = dist::axisIndex(dist::meshOf(getOperation()), channel.getAxis());
      OpBuilder builder(channel);
      plan::ChannelOp::create(builder, channel.getLoc(), channel.getSymName(), *axis, channel.getFrom(),
                              channel.getTo());
      channel.erase();
    }
  }

  /// The graph's inputs, in its order, each once: several stages may read one.
  void lowerInputs() {
    llvm::DenseSet<StringAttr> known; // looked up
    for (auto value : getOperation().getOps<dist::ValueOp>()) {
      if (!value.getInput() || !known.insert(value.getInputAttr()).second)
        continue;
      OpBuilder builder(value);
      plan::InputOp::create(builder, value.getLoc(), value.getInputAttr(), value.getTypeAttr(),
                            value->getAttrOfType<StringAttr>(tokensAttribute),
                            value->getAttrOfType<IntegerAttr>(limitAttribute),
                            value->getAttrOfType<IntegerAttr>(ignoredAttribute));
    }
  }
};

} // namespace
