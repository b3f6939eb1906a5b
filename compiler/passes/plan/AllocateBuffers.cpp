//===- AllocateBuffers.cpp - one buffer a value, one routine a fragment -----===//
//
// Always right and never clever. Works role by role; a fragment becomes a routine by one walk over its ops, in their
// order, all on the compute queue:
//
//   - what a kernel or a collective defines gets a buffer of its own, of scope call;
//   - reshapes, views, constants and loads are views of a buffer, and so is a read of a variable, unless the variable
//     is written again before the read's last use: then it is a copy;
//   - a store, of a variable or of a value for later fragments, copies; a pack copies each of its inputs;
//   - a transfer copies to another memory space, at once into the value that it is stored in there.
//
// ds-elide-copies removes the copies. Buffers of state and of values: RoleBuffers.h; of programs: LowerPrograms.h.
//
//===----------------------------------------------------------------------===//
#include "compiler/analysis/KernelSelection.h"
#include "compiler/analysis/TrainStep.h"
#include "compiler/analysis/VariableUses.h"
#include "compiler/passes/plan/CommandWriter.h"
#include "compiler/passes/plan/LowerPrograms.h"
#include "compiler/passes/plan/Passes.h"
#include "compiler/passes/plan/RoleBuffers.h"
#include "dialects/Dist/Mesh.h"
#include "dialects/Plan/Plan.h"
#include "dialects/Train/LocationName.h"

#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/TypeSwitch.h"

namespace ds {
#define GEN_PASS_DEF_ALLOCATEBUFFERS
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

/// The ONNX name of a result; else what computes it.
std::string nameOf(Value value) {
  std::string name = train::locationName(value.getLoc());
  if (!name.empty())
    return name;
  Operation *op = value.getDefiningOp();
  auto kernel = dyn_cast<dist::KernelOp>(op);
  return (kernel ? kernel.getKernel() : op->getName().getStringRef()).str();
}

int64_t elementBytes(Value tensor) { return cast<RankedTensorType>(tensor.getType()).getElementTypeBitWidth() / 8; }

/// Lowers one dist.role.
class RoleLowering {
public:
  RoleLowering(ModuleOp module, dist::RoleOp role, kernels::Device device)
      : symbols_(module), role_(role), device_(device), members_(module.getContext()), plan_(makeRole(role)),
        storage_(symbols_, role, members_), writer_(symbols_, plan_) {}

  LogicalResult run() {
    llvm::SetVector<dist::FragmentOp> fragments;
    role_.walk([&](dist::CallOp call) { fragments.insert(symbols_.lookup<dist::FragmentOp>(call.getFragment())); });
    members_.setInsertionPointToStart(&plan_.getBody().front());
    for (plan::MemorySpace space : spacesOf(fragments))
      plan::ArenaOp::create(members_, role_.getLoc(), stringifyMemorySpace(space), space, IntegerAttr(), IntegerAttr());
    plan::QueueOp::create(members_, role_.getLoc(), "compute", plan::QueueKind::Compute);
    for (auto bucket : cast<ModuleOp>(symbols_.getOp()).getOps<dist::BucketOp>()) // of its slices, be it one
      writer_.communicator(bucket.getAxisAttr());
    for (dist::FragmentOp fragment : fragments)
      if (failed(lowerFragment(fragment)))
        return failure();
    for (auto program : role_.getOps<dist::ProgramOp>())
      LowerPrograms(symbols_, plan_, members_, storage_, writer_).lower(program);
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

  /// Device memory, and what fragments transfer to.
  static SmallVector<plan::MemorySpace> spacesOf(const llvm::SetVector<dist::FragmentOp> &fragments) {
    llvm::SmallDenseSet<plan::MemorySpace> used{plan::MemorySpace::Device};
    for (dist::FragmentOp fragment : fragments)
      for (auto transfer : fragment.getOps<dist::TransferOp>())
        used.insert(plan::MemorySpace(transfer.getTo()));
    SmallVector<plan::MemorySpace> spaces{plan::MemorySpace::Device, plan::MemorySpace::Host, plan::MemorySpace::Nvme};
    llvm::erase_if(spaces, [&](plan::MemorySpace space) { return !used.contains(space); });
    return spaces;
  }

  //===-- where tensors lie ---------------------------------------------------===//

  /// Where `value` lies; what is no view of another gets its buffer here.
  BufferView viewOf(Value value) {
    if (BufferView known = views_.lookup(value))
      return known;
    const BufferView view =
        TypeSwitch<Operation *, BufferView>(value.getDefiningOp())
            .Case([&](train::ReshapeOp op) { return viewOf(op.getInput()); })
            .Case([&](dist::ViewOp op) {
              return viewOf(op.getInput()).at(int64_t(op.getOffset()) * elementBytes(value));
            })
            .Case([&](train::ReadOp op) { return storage_.ofState(op.getVariableAttr().getAttr()); })
            .Case(
                [&](dist::ReadWholeOp op) { return storage_.ofWhole(symbols_.lookup<dist::BucketOp>(op.getBucket())); })
            .Case([&](dist::LoadOp op) { return storage_.ofValue(op.getValueAttr().getAttr()); })
            .Case([&](dist::TransferOp op) {
              dist::StoreOp store = storeElsewhere(op);
              return store ? storage_.ofValue(store.getValueAttr().getAttr()) : ownBuffer(value, nameOf(value));
            })
            .Case([&](train::ConstantOp op) { return storage_.ofConstant(op.getValue(), op.getLoc()); })
            .Default([&](Operation *) { return ownBuffer(value, nameOf(value)); });
    return views_[value] = view;
  }

  /// What stores a transfer's result outside of device memory, where no kernel could copy it; or null.
  static dist::StoreOp storeElsewhere(dist::TransferOp transfer) {
    if (transfer.getTo() != dist::MemorySpace::Device)
      for (Operation *user : transfer.getResult().getUsers())
        if (auto store = dyn_cast<dist::StoreOp>(user))
          return store;
    return {};
  }

  BufferView ownBuffer(Value value, StringRef name) {
    Operation *op = value.getDefiningOp();
    auto transfer = dyn_cast<dist::TransferOp>(op);
    const bool computed = !isa<dist::DistDialect>(op->getDialect()) || isa<dist::KernelOp, dist::TransferOp>(op);
    return {storage_.make(name, plan::tensorBytes(value.getType()), plan::Scope::Call,
                          computed ? plan::Category::Activations : plan::Category::Communication,
                          transfer ? plan::MemorySpace(transfer.getTo()) : plan::MemorySpace::Device),
            0, 0};
  }

  //===-- fragments ------------------------------------------------------------===//

  LogicalResult lowerFragment(dist::FragmentOp fragment) {
    members_.setInsertionPointToEnd(&plan_.getBody().front());
    auto routine = plan::RoutineOp::create(members_, fragment.getLoc(), fragment.getSymNameAttr(),
                                           plan::Phase(fragment.getPhase()), fragment.getStageAttr());
    members_.setInsertionPoint(routine);
    writer_.beginRoutine(routine);
    views_.clear();
    tokens_.clear();
    accesses_.clear();
    for (Operation &op : fragment.getBody().front())
      if (isa<dist::LoadOp, dist::StoreOp>(op))
        accesses_[op.getAttrOfType<FlatSymbolRefAttr>("value")].push_back(&op);
    const VariableUses uses(fragment.getBody().front());
    for (Operation &op : fragment.getBody().front())
      if (failed(lowerOp(&op, uses)))
        return failure();
    return success();
  }

  LogicalResult lowerOp(Operation *op, const VariableUses &uses) {
    return TypeSwitch<Operation *, LogicalResult>(op)
        .Case<train::ReshapeOp, dist::ViewOp, train::ConstantOp, dist::LoadOp, dist::ReadWholeOp>(
            [](auto) { return success(); }) // views
        .Case([&](train::ReadOp read) {
          if (uses.isReadOutlived(read))
            copyRead(read);
          return success();
        })
        .Case([&](dist::KernelOp kernel) { return lowerKernel(kernel), success(); })
        .Case([&](train::StoreOp store) {
          return copy(store.getValue(), storage_.ofState(store.getVariableAttr().getAttr()), op), success();
        })
        .Case([&](dist::StoreOp store) { return lowerStore(store); })
        .Case([&](dist::PackOp pack) { return lowerPack(pack), success(); })
        .Case([&](dist::FeedOp feed) {
          auto value = symbols_.lookup<dist::ValueOp>(feed.getValue());
          writer_.feed(value.getInputAttr(), storage_.ofValue(value.getSymNameAttr()), value.getType(), op->getLoc());
          return success();
        })
        .Case([&](dist::TransferOp transfer) {
          writer_.copy(viewOf(transfer.getTensor()), viewOf(transfer.getResult()), transfer.getType(), op->getLoc());
          return success();
        })
        .Case<dist::ReceiveOp, dist::SendOp>([&](auto message) { return lowerMessage(message), success(); })
        .Case([&](dist::CollectiveOpInterface collective) { return lowerCollective(collective); })
        .Case<dist::AllGatherDoneOp, dist::ReduceScatterDoneOp, dist::AllReduceDoneOp, dist::BroadcastDoneOp>(
            [&](auto done) { return writer_.await(tokens_.lookup(done.getToken()), op->getLoc()), success(); })
        .Default([](Operation *other) {
          return other->emitOpError("computes something, but is no kernel; ds-select-kernels makes it one");
        });
  }

  void lowerKernel(dist::KernelOp kernel) {
    CommandOperands operands;
    for (const dist::KernelOp::Operand &operand : kernel.getOperandsOfKernel())
      operands.add(operand.variable ? storage_.ofState(operand.variable) : viewOf(operand.value),
                   plan::Access(operand.access), operand.type);
    if (std::optional<uint64_t> bytes = kernel.getWorkspace())
      operands.add({storage_.make((kernel.getKernel() + " workspace").str(), int64_t(*bytes), plan::Scope::Call,
                                  plan::Category::Workspace),
                    0, 0},
                   plan::Access::Scratch, RankedTensorType::get({int64_t(*bytes)}, members_.getIntegerType(8)));
    writer_.kernel(kernel.getKernelAttr(), kernel.getArguments(), operands, kernel);
  }

  //===-- copies ---------------------------------------------------------------===//

  void copy(const BufferView &from, const BufferView &to, Value tensor, Operation *op) {
    const KernelCall call = selectCopy(tensor);
    CommandOperands operands;
    operands.add(from, plan::Access::Read, tensor.getType());
    operands.add(to, plan::Access::Write, tensor.getType());
    writer_.kernel(members_.getStringAttr(call.kernel), members_.getDictionaryAttr(call.attributes), operands, op);
  }
  void copy(Value tensor, const BufferView &to, Operation *op) { copy(viewOf(tensor), to, tensor, op); }

  void copyRead(train::ReadOp read) {
    const BufferView own = ownBuffer(read.getResult(), read.getVariable());
    copy(viewOf(read.getResult()), own, read.getResult(), read);
    views_[read.getResult()] = own;
  }

  /// A load is a view of the value's buffer, so nothing of the fragment may write the value as well.
  LogicalResult lowerStore(dist::StoreOp store) {
    for (Operation *other : accesses_[store.getValueAttr()])
      if (other != store) {
        InFlightDiagnostic error = store.emitOpError()
                                   << store.getValueAttr() << " is loaded or stored by another op of the fragment";
        error.attachNote(other->getLoc()) << "the other op";
        return error;
      }
    const BufferView kept = storage_.ofValue(store.getValueAttr().getAttr());
    if (viewOf(store.getTensor()).buffer != kept.buffer) // a transfer has put it there
      copy(store.getTensor(), kept, store);
    return success();
  }

  /// Zeroes what lies between the inputs.
  void lowerPack(dist::PackOp pack) {
    const BufferView whole = viewOf(pack.getResult());
    auto type = cast<RankedTensorType>(pack.getType());
    const int64_t element = elementBytes(pack.getResult());
    int64_t end = 0;
    const auto zero = [&](int64_t begin) {
      if (begin > end)
        writer_.fill(whole.at(end * element), type.clone({begin - end}), pack.getLoc());
    };
    for (auto [input, offset] : llvm::zip(pack.getInputs(), pack.getOffsets())) {
      zero(offset);
      end = offset + cast<RankedTensorType>(input.getType()).getNumElements();
      copy(input, whole.at(offset * element), pack);
    }
    zero(type.getNumElements());
  }

  //===-- messages and collectives ----------------------------------------------===//

  void lowerMessage(dist::ReceiveOp receive) {
    CommandOperands operands;
    for (auto name : receive.getValues().getAsRange<FlatSymbolRefAttr>())
      operands.add(storage_.ofValue(name.getAttr()), plan::Access::Write,
                   symbols_.lookup<dist::ValueOp>(name.getAttr()).getType());
    writer_.receive(receive, operands);
  }

  void lowerMessage(dist::SendOp send) {
    CommandOperands operands;
    for (Value tensor : send.getTensors())
      operands.add(storedBefore(send, tensor), plan::Access::Read, tensor.getType());
    writer_.send(send, operands);
  }

  /// Where a message may leave from while the next call computes: the value that keeps `tensor`, if one does.
  BufferView storedBefore(dist::SendOp send, Value tensor) {
    for (Operation *user : tensor.getUsers())
      if (auto store = dyn_cast<dist::StoreOp>(user); store && store->isBeforeInBlock(send))
        return storage_.ofValue(store.getValueAttr().getAttr());
    return viewOf(tensor);
  }

  /// A start writes the results of its done.
  LogicalResult lowerCollective(dist::CollectiveOpInterface collective) {
    if (collective.getDim() != 0)
      return collective->emitOpError() << "cuts or joins dimension " << collective.getDim()
                                       << "; a plan's slices lie in one piece, which those of dimension 0 do";
    const bool starts = collective->getNumResults() == 1 && isa<dist::TokenType>(collective->getResult(0).getType());
    const ValueRange results = starts ? (*collective->getUsers().begin())->getResults() : collective->getResults();
    const Value token = writer_.collective(collective, operandsOf(collective, results));
    if (starts)
      tokens_[collective->getResult(0)] = token;
    return success();
  }

  /// Where part `index` of a collective puts its result.
  BufferView targetOf(dist::CollectiveOpInterface op, unsigned index, ValueRange results) {
    if (!op.getIntoAttr())
      return viewOf(results[index]);
    auto name = cast<FlatSymbolRefAttr>(op.getIntoAttr()[index]).getAttr();
    auto bucket = symbols_.lookup<dist::BucketOp>(name);
    return bucket && op.getKind() != dist::CollectiveKind::ReduceScatter ? storage_.ofWhole(bucket)
                                                                         : storage_.ofState(name);
  }

  /// Operands of plan.collective: source, target and, for sums, scratch of every part. Parts run in order and share it.
  CommandOperands operandsOf(dist::CollectiveOpInterface op, ValueRange results) {
    auto mesh = symbols_.lookup<dist::MeshOp>(op.getMeshAttr().getAttr());
    const int64_t ranks = dist::axisSize(mesh, op.getAxisAttr());
    const bool sums =
        op.getKind() == dist::CollectiveKind::ReduceScatter || op.getKind() == dist::CollectiveKind::AllReduce;
    const FailureOr<SmallVector<Type>> targets = dist::resultTypes(op, ranks);
    int64_t bytes = 0;
    for (auto [input, target] : llvm::zip(op.getInputs(), *targets)) {
      const int64_t element = cast<RankedTensorType>(input.getType()).getElementTypeBitWidth() / 8;
      const int64_t wanted = scratchBytes(input.getType(), target, op.getAccumulate(), device_);
      bytes = std::max<int64_t>({bytes, ranks * element, int64_t(llvm::alignTo(wanted, ranks * element))});
    }
    const BufferView scratch{
        sums ? storage_.make("messages", bytes, plan::Scope::Call, plan::Category::Communication) : Value(), 0, 0};
    CommandOperands operands;
    for (auto [index, input] : llvm::enumerate(op.getInputs())) {
      operands.add(viewOf(input), plan::Access::Read, input.getType());
      operands.add(targetOf(op, index, results), op.getAccumulate() ? plan::Access::ReadWrite : plan::Access::Write,
                   (*targets)[index]);
      if (sums)
        operands.add(scratch, plan::Access::Scratch, RankedTensorType::get({bytes}, members_.getIntegerType(8)));
    }
    return operands;
  }

  SymbolTable symbols_;
  dist::RoleOp role_;
  kernels::Device device_;
  OpBuilder members_; // where buffers, routines and programs go
  plan::RoleOp plan_;
  RoleBuffers storage_;
  CommandWriter writer_;
  // Of one fragment. Looked up, never iterated.
  llvm::DenseMap<Value, BufferView> views_;
  llvm::DenseMap<Attribute, SmallVector<Operation *, 2>> accesses_; // loads and stores of the fragment, by value
  llvm::DenseMap<Value, Value> tokens_;                             // of the plan, by those of dist
};

struct AllocateBuffers : ds::impl::AllocateBuffersBase<AllocateBuffers> {
  using AllocateBuffersBase::AllocateBuffersBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    noteOrderOfSums();
    lowerChannels();
    lowerInputs();
    SmallVector<dist::RoleOp> roles(module.getOps<dist::RoleOp>());
    for (dist::RoleOp role : roles)
      if (failed(RoleLowering(module, role, device).run()))
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
