//===- JoinStages.cpp - what pipeline stages tell each other once a step ------===//
//
// 1. Tied parameters: the gradients of a parameter that several roles hold. The first role that has added to one
//    receives the others' sums, adds them to its own in the order of the roles, and sends the total to all that hold
//    the parameter. All copies then take the same step. Megatron-LM does this by an all_reduce among the stages that
//    hold it; here the sum has one order.
// 2. The gradient norm: each role packs the partial sums of the parameters that it is the first to hold. An
//    all_gather along axis pipe brings all of them to all ranks, which add them in the order of the parameters.
// 3. The targets, where losses are weighed by them: the last role, which counts them, sends them to all others ahead of
//    their updates.
// 4. The loss, and an evaluation's targets: the last role sends them to the first, which stores them as if it had
//    measured them.
//
//===----------------------------------------------------------------------===//
#include "compiler/analysis/BucketIndex.h"
#include "compiler/analysis/Gradients.h"
#include "compiler/analysis/Stages.h"
#include "compiler/analysis/TrainStep.h"
#include "compiler/passes/pipeline/Passes.h"
#include "dialects/Dist/Mesh.h"

#include "mlir/IR/ImplicitLocOpBuilder.h"

#include "llvm/ADT/MapVector.h"

#include <map>

namespace ds {
#define GEN_PASS_DEF_JOINSTAGES
#include "compiler/passes/pipeline/Passes.h.inc"
} // namespace ds

using namespace mlir;
using namespace ds;

namespace {

struct JoinStages : ds::impl::JoinStagesBase<JoinStages> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    SymbolTable symbols(module);
    symbols_ = &symbols;
    roles_.assign(module.getOps<dist::RoleOp>().begin(), module.getOps<dist::RoleOp>().end());
    if (roles_.size() < 2)
      return;
    mesh_ = dist::requireMesh(module);
    if (!mesh_ || failed(findUpdates()))
      return signalPassFailure();
    const RoleUses uses(module);
    sumTies(uses);
    shareNorm(uses);
    shareTargets();
    for (StringRef program : {"step", "evaluate"})
      sendMetric(lossMetric, program, uses);
    sendMetric(targetsMetric, "evaluate", uses);
  }

private:
  /// A role stands for each coordinate of axis pipe, in order, and calls the update of its coordinate.
  LogicalResult findUpdates() {
    if (const int64_t ranks = dist::axisSize(mesh_, dist::pipeAxis); ranks != int64_t(roles_.size()))
      return dist::withMesh(getOperation().emitError()
                                << "has " << roles_.size() << " roles for " << ranks << " ranks along axis \""
                                << dist::pipeAxis << "\"; ds-schedule-calls makes one for each",
                            mesh_);
    const FragmentIndex fragments(getOperation());
    updates_.clear();
    for (auto [index, role] : llvm::enumerate(roles_)) {
      dist::FragmentOp update = fragments.find(dist::Phase::Update, int64_t(index));
      if (!update)
        return role.emitOpError() << "has no fragment of phase update and pipe " << index
                                  << "; ds-outline-fragments makes it";
      const WalkResult called = role.walk([&](dist::CallOp call) {
        return call.getFragment() == update.getSymName() ? WalkResult::interrupt() : WalkResult::advance();
      });
      if (!called.wasInterrupted())
        return dist::withDeclaration(role.emitOpError() << "never calls @" << update.getSymName() << ", its update",
                                     update);
      updates_.push_back(update);
    }
    return success();
  }

  //===-- messages ----------------------------------------------------------------===//

  FlatSymbolRefAttr makeChannel(const Twine &name, int64_t from, int64_t to) {
    OpBuilder builder(roles_.front());
    auto channel = dist::ChannelOp::create(builder, getOperation().getLoc(), name.str(), dist::pipeAxis, from, to);
    return FlatSymbolRefAttr::get(symbols_->insert(channel));
  }

  FlatSymbolRefAttr makeValue(const Twine &name, RankedTensorType type) {
    OpBuilder builder(roles_.front());
    auto value = dist::ValueOp::create(builder, getOperation().getLoc(), name.str(), type, StringAttr());
    return FlatSymbolRefAttr::get(symbols_->insert(value));
  }

  /// A fragment of a role; one that receives is called ahead of the fragment named `aheadOf`.
  dist::FragmentOp makeFragment(const Twine &name, dist::Phase phase, int64_t role, FlatSymbolRefAttr aheadOf = {}) {
    OpBuilder builder(roles_.front());
    auto fragment =
        dist::FragmentOp::create(builder, getOperation().getLoc(), name.str(), phase, std::nullopt, role, aheadOf);
    fragment.getBody().emplaceBlock();
    symbols_->insert(fragment);
    return fragment;
  }

  //===-- tied parameters -----------------------------------------------------------===//

  /// Gradients that several roles hold: by name of the variable, or of the bucket of which each rank has a slice.
  struct Tied {
    FlatSymbolRefAttr state;
    RankedTensorType type;
  };

  /// Roles that hold a parameter and, of these, those that add to its gradient.
  using Roles = std::pair<ArrayRef<int64_t>, ArrayRef<int64_t>>;

  void sumTies(const RoleUses &uses) {
    const BucketIndex buckets(getOperation());
    const Gradients gradients(getOperation());
    llvm::MapVector<Roles, llvm::MapVector<StringAttr, Tied>> ties;
    for (auto parameter : getOperation().getOps<train::VariableOp>()) {
      ArrayRef<int64_t> roles = parameter.getKind() == train::VariableKind::Parameter
                                    ? uses.rolesOf(parameter.getSymNameAttr())
                                    : ArrayRef<int64_t>();
      train::VariableOp gradient = gradients.of(parameter.getSymNameAttr());
      if (roles.size() < 2 || !gradient)
        continue;
      // Stages 1 to 3 have summed slices; else every rank has the whole.
      dist::BucketOp bucket =
          buckets.bucketOf(parameter.getSymNameAttr()) ? buckets.bucketOf(gradient.getSymNameAttr()) : dist::BucketOp();
      StringAttr name = bucket ? bucket.getSymNameAttr() : gradient.getSymNameAttr();
      if (ArrayRef<int64_t> adders = uses.addersOf(name); !adders.empty())
        ties[{roles, adders}].try_emplace(
            name, Tied{FlatSymbolRefAttr::get(name), bucket ? bucket.getSliceType() : gradient.getTensorType()});
    }
    for (auto &[roles, states] : ties) {
      if (roles.second.size() > 1)
        train::raiseNumerics(getOperation(), train::Numerics::Reassociated);
      sum(roles, llvm::to_vector(llvm::make_second_range(states)));
    }
  }

  /// Behind the reductions at the head of an update.
  ImplicitLocOpBuilder behindReductions(dist::FragmentOp update) {
    Block &block = update.getBody().front();
    auto it = block.begin();
    while (it != block.end() &&
           isa<dist::ReadWholeOp, dist::CollectiveOpInterface, train::AccumulateOp, dist::SendOp>(*it))
      ++it;
    return {update.getLoc(), &block, it};
  }

  /// The first role that adds puts the others' sums to its own, in their order, and sends all holders what comes out.
  void sum(Roles roles, ArrayRef<Tied> states) {
    const auto &[holders, adders] = roles;
    const int64_t first = adders.front();
    std::map<int64_t, ImplicitLocOpBuilder> at; // by role
    for (const int64_t holder : holders)
      at.try_emplace(holder, behindReductions(updates_[size_t(holder)]));
    ImplicitLocOpBuilder &atFirst = at.at(first);
    for (const int64_t other : adders.drop_front()) {
      ImplicitLocOpBuilder &b = at.at(other);
      const std::string pair = std::to_string(other) + "-" + std::to_string(first);
      FlatSymbolRefAttr up = makeChannel("tied::" + pair, other, first);
      SmallVector<Value> own;
      SmallVector<Attribute> received;
      for (const Tied &tied : states) {
        own.push_back(train::ReadOp::create(b, tied.type, tied.state));
        received.push_back(makeValue(tied.state.getValue() + "::from::" + Twine(other), tied.type));
        Value theirs = dist::LoadOp::create(atFirst, tied.type, cast<FlatSymbolRefAttr>(received.back()));
        train::AccumulateOp::create(atFirst, tied.state, theirs);
      }
      dist::SendOp::create(b, own, up);
      addReceive(receiveFragment(first), received, up);
    }
    for (const int64_t other : holders)
      if (other != first)
        giveSum(atFirst, at.at(other), first, other, states);
  }

  /// What the first role sends replaces `other`'s own sums.
  void giveSum(ImplicitLocOpBuilder &atFirst, ImplicitLocOpBuilder &b, int64_t first, int64_t other,
               ArrayRef<Tied> states) {
    SmallVector<Value> sums;
    for (const Tied &tied : states)
      sums.push_back(train::ReadOp::create(atFirst, tied.type, tied.state));
    FlatSymbolRefAttr down = makeChannel("tied::" + Twine(first) + "-" + Twine(other), first, other);
    dist::SendOp::create(atFirst, sums, down);
    SmallVector<Attribute> received;
    for (const Tied &tied : states) {
      received.push_back(makeValue(tied.state.getValue() + "::sum::" + Twine(other), tied.type));
      Value sum = dist::LoadOp::create(b, tied.type, cast<FlatSymbolRefAttr>(received.back()));
      train::StoreOp::create(b, tied.state, sum);
    }
    addReceive(receiveFragment(other), received, down);
  }

  /// The fragment that a role calls ahead of its update, to receive.
  dist::FragmentOp receiveFragment(int64_t role) {
    dist::FragmentOp update = updates_[size_t(role)];
    if (dist::FragmentOp known = FragmentIndex(getOperation()).receiverFor(update))
      return known;
    dist::FragmentOp fragment = makeFragment("receive::" + update.getSymName(), dist::Phase::Receive, role,
                                             FlatSymbolRefAttr::get(update.getSymNameAttr()));
    roles_[size_t(role)].walk([&](dist::CallOp call) {
      if (call.getFragment() != update.getSymName())
        return;
      OpBuilder builder(call);
      dist::CallOp::create(builder, call.getLoc(), fragment.getSymName(), call.getMicrobatch());
    });
    return fragment;
  }

  static void addReceive(dist::FragmentOp fragment, ArrayRef<Attribute> values, FlatSymbolRefAttr channel) {
    auto builder = OpBuilder::atBlockEnd(&fragment.getBody().front());
    dist::ReceiveOp::create(builder, fragment.getLoc(), builder.getArrayAttr(values), channel);
  }

  //===-- the norm --------------------------------------------------------------------===//

  /// Each rank packs the partial sums of the parameters that it is the first to hold; all get all, and view each where
  /// it lies.
  void shareNorm(const RoleUses &uses) {
    SmallVector<int64_t> owners; // by operand of the norm: trained parameters as they are declared
    const Gradients gradients(getOperation());
    for (auto parameter : getOperation().getOps<train::VariableOp>())
      if (gradients.of(parameter.getSymNameAttr())) {
        ArrayRef<int64_t> roles = uses.rolesOf(parameter.getSymNameAttr());
        owners.push_back(roles.empty() ? 0 : roles.front());
      }
    for (auto [role, update] : llvm::enumerate(updates_))
      for (auto norm : update.getOps<train::GlobalNormOp>())
        if (norm.getPartials().size() == owners.size())
          share(norm, owners, int64_t(role));
    for (dist::FragmentOp update : updates_)
      for (Operation &op : llvm::make_early_inc_range(llvm::reverse(update.getBody().front())))
        if (op.use_empty() && isa<train::ReadOp, train::BlockSumSquaresOp, dist::ViewOp, dist::AllGatherOp>(op) &&
            op.getNumResults() > 0)
          op.erase();
  }

  void share(train::GlobalNormOp norm, ArrayRef<int64_t> owners, int64_t role) {
    std::vector<int64_t> lengths(roles_.size());
    SmallVector<int64_t> offsets; // of each partial in its owner's part
    for (auto [partial, owner] : llvm::zip(norm.getPartials(), owners)) {
      offsets.push_back(lengths[size_t(owner)]);
      lengths[size_t(owner)] += cast<RankedTensorType>(partial.getType()).getNumElements();
    }
    const int64_t length = *llvm::max_element(lengths);
    ImplicitLocOpBuilder b(norm.getLoc(), norm);
    auto type = [&](int64_t elements) { return RankedTensorType::get({elements}, b.getF64Type()); };
    SmallVector<Value> own;
    SmallVector<int64_t> ownOffsets;
    for (auto [partial, owner, offset] : llvm::zip(norm.getPartials(), owners, offsets))
      if (owner == role) {
        own.push_back(partial);
        ownOffsets.push_back(offset);
      }
    Value packed = dist::PackOp::create(b, type(length), own, ownOffsets);
    Value all = dist::AllGatherOp::create(b, TypeRange(type(length * int64_t(roles_.size()))), packed,
                                          FlatSymbolRefAttr::get(mesh_), b.getStringAttr(dist::pipeAxis), ArrayAttr(),
                                          UnitAttr())
                    .getResult(0);
    for (auto [index, owner] : llvm::enumerate(owners)) {
      OpOperand &partial = norm->getOpOperand(unsigned(index));
      partial.set(dist::ViewOp::create(b, cast<RankedTensorType>(partial.get().getType()), all,
                                       owner * length + offsets[index]));
    }
  }

  //===-- the targets -------------------------------------------------------------------===//

  /// Every update divides by them; the last role, whose stages end with the loss, has counted them.
  void shareTargets() {
    auto targets = symbols_->lookup<train::VariableOp>(targetsMetric);
    if (!targets)
      return;
    const auto state = FlatSymbolRefAttr::get(targets.getSymNameAttr());
    const int64_t last = int64_t(roles_.size()) - 1;
    for (int64_t other = 0; other < last; ++other) {
      FlatSymbolRefAttr channel = makeChannel("targets::" + Twine(last) + "-" + Twine(other), last, other);
      FlatSymbolRefAttr value = makeValue("targets::" + Twine(other), targets.getTensorType());
      ImplicitLocOpBuilder sender = behindReductions(updates_[size_t(last)]);
      Value counted = train::ReadOp::create(sender, targets.getTensorType(), state);
      dist::SendOp::create(sender, counted, channel);
      addReceive(receiveFragment(other), {value}, channel);
      ImplicitLocOpBuilder b = behindReductions(updates_[size_t(other)]);
      Value theirs = dist::LoadOp::create(b, targets.getTensorType(), value);
      train::StoreOp::create(b, state, theirs);
    }
  }

  //===-- metrics -----------------------------------------------------------------------===//

  /// The last fragment of a program's last role sends a metric; the first role stores it behind its own last call.
  void sendMetric(StringRef metric, StringRef name, const RoleUses &uses) {
    auto measured = symbols_->lookup<train::VariableOp>(metric);
    ArrayRef<int64_t> roles = measured ? uses.rolesOf(measured.getSymNameAttr()) : ArrayRef<int64_t>();
    if (roles.empty() || roles.back() == 0)
      return;
    dist::ProgramOp from = programOf(roles.back(), name), to = programOf(0, name);
    if (!from || !to || from.getBody().front().empty())
      return;
    auto state = FlatSymbolRefAttr::get(measured.getSymNameAttr());
    auto last = cast<dist::CallOp>(from.getBody().front().back());
    auto sender = ImplicitLocOpBuilder::atBlockEnd(
        measured.getLoc(), &symbols_->lookup<dist::FragmentOp>(last.getFragment()).getBody().front());
    FlatSymbolRefAttr channel = makeChannel(name + "::" + metric, roles.back(), 0);
    FlatSymbolRefAttr value = makeValue(name + "::" + metric + "::value", measured.getTensorType());
    Value mine = train::ReadOp::create(sender, measured.getTensorType(), state);
    dist::SendOp::create(sender, mine, channel);
    const std::string stored = (name + "::stored_" + metric).str();
    dist::FragmentOp receive = makeFragment("receive::" + name + "::" + metric, dist::Phase::Receive, 0,
                                            FlatSymbolRefAttr::get(&getContext(), stored)),
                     store = makeFragment(stored, dist::Phase::Metric, 0);
    addReceive(receive, {value}, channel);
    auto b = ImplicitLocOpBuilder::atBlockEnd(measured.getLoc(), &store.getBody().front());
    Value theirs = dist::LoadOp::create(b, measured.getTensorType(), value);
    train::StoreOp::create(b, state, theirs);
    auto calls = OpBuilder::atBlockEnd(&to.getBody().front());
    for (dist::FragmentOp fragment : {receive, store})
      dist::CallOp::create(calls, measured.getLoc(), fragment.getSymName(), last.getMicrobatch());
  }

  dist::ProgramOp programOf(int64_t role, StringRef name) {
    for (auto program : roles_[size_t(role)].getOps<dist::ProgramOp>())
      if (program.getSymName() == name)
        return program;
    return {};
  }

  SymbolTable *symbols_ = nullptr;
  dist::MeshOp mesh_;
  std::vector<dist::RoleOp> roles_;
  SmallVector<dist::FragmentOp> updates_; // by role
};

} // namespace
