//===- OffloadActivations.cpp - what the backward reads lies elsewhere until then ---===//
//
// 1. Choose the values that only forward fragments store and only backward ones load; what is small, sent or received
//    stays, as does what the rules say.
// 2. Where the machine's links are known: what has not left by the end of the forward stays, and what would have to
//    come back before it is away (ReturnTimes.h).
// 3. A store becomes a transfer to the host behind what computes the tensor, stored there; and on to NVMe.
// 4. A load becomes a transfer back, in front of the first use of the tensor that is used before: one is on its way
//    while another is used. It begins earlier where the clock says that it takes longer.
// Rhu et al., vDNN, MICRO 2016; ZeRO-Offload's cpu_checkpointing. Lifetimes are known here, so all of it is decided
// before the run.
//
//===----------------------------------------------------------------------===//
#include "compiler/passes/offload/Passes.h"
#include "compiler/passes/offload/ReturnTimes.h"
#include "dialects/Dist/Dist.h"
#include "dialects/Train/LocationName.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/Support/Regex.h"

namespace ds {
#define GEN_PASS_DEF_OFFLOADACTIVATIONS
#include "compiler/passes/offload/Passes.h.inc"
} // namespace ds

using namespace mlir;
using namespace ds;

namespace {

constexpr dist::MemorySpace device = dist::MemorySpace::Device, host = dist::MemorySpace::Host,
                            nvme = dist::MemorySpace::Nvme;

/// Who stores and loads a value; whether anybody else names it.
struct ValueUses {
  SmallVector<dist::StoreOp> stores;
  SmallVector<dist::LoadOp> loads;
  bool other = false;
};

/// Where tensors lie that ops of some name compute.
struct Rule {
  std::string text; // of the expression
  llvm::Regex modules;
  dist::MemorySpace space;
  bool matched = false;
};

/// The first op that uses what a load loads, or nullptr.
Operation *firstUse(dist::LoadOp load) {
  Operation *first = nullptr;
  for (Operation *user : load.getResult().getUsers())
    if (!first || user->isBeforeInBlock(first))
      first = user;
  return first;
}

struct OffloadActivations : ds::impl::OffloadActivationsBase<OffloadActivations> {
  using OffloadActivationsBase::OffloadActivationsBase;

  void runOnOperation() override {
    if (leastBytes < 0) {
      getOperation().emitError() << "least-bytes is " << leastBytes.getValue() << "; it must not be negative";
      return signalPassFailure();
    }
    FailureOr<std::vector<Rule>> parsed = parseRules();
    if (failed(parsed))
      return signalPassFailure();
    llvm::MapVector<StringAttr, ValueUses> uses = usesOfValues();
    const llvm::DenseMap<Operation *, double> returns = chooseValues(uses, *parsed);
    if (failed(requireMatches(*parsed)))
      return signalPassFailure();
    llvm::MapVector<Operation *, SmallVector<dist::LoadOp>> loads; // by fragment
    for (auto value : getOperation().getOps<dist::ValueOp>()) {
      ValueUses &own = uses[value.getSymNameAttr()];
      if (!chosen_.contains(value))
        continue;
      for (dist::StoreOp store : own.stores)
        evict(store, value.getSpace());
      for (dist::LoadOp load : own.loads)
        loads[load->getParentOp()].push_back(load);
    }
    for (auto &[fragment, own] : loads)
      fetch(own, returns);
  }

private:
  FailureOr<std::vector<Rule>> parseRules() {
    std::vector<Rule> parsed;
    for (const std::string &rule : rules) {
      const auto [text, where] = StringRef(rule).rsplit('=');
      const std::optional<dist::MemorySpace> space = dist::symbolizeMemorySpace(where);
      if (!space)
        return getOperation().emitError() << "rule \"" << rule << "\" must end in =device, =host or =nvme";
      parsed.push_back({text.str(), llvm::Regex(text), *space});
      if (std::string error; !parsed.back().modules.isValid(error))
        return getOperation().emitError() << "\"" << text << "\" is no regular expression: " << error;
    }
    return parsed;
  }

  /// A rule that moves nothing is a mistake, but for one that takes whatever there is.
  LogicalResult requireMatches(ArrayRef<Rule> parsed) {
    for (const Rule &rule : parsed)
      if (!rule.matched && rule.space != device && rule.text != ".*")
        return getOperation().emitError()
               << "\"" << rule.text << "\" is to leave device memory, but matches no tensor of at "
               << "least " << leastBytes.getValue() << " bytes that the backward reads from the forward";
    return success();
  }

  llvm::MapVector<StringAttr, ValueUses> usesOfValues() {
    llvm::MapVector<StringAttr, ValueUses> uses;
    for (auto fragment : getOperation().getOps<dist::FragmentOp>())
      for (Operation &op : fragment.getBody().front())
        if (auto store = dyn_cast<dist::StoreOp>(op))
          uses[store.getValueAttr().getAttr()].stores.push_back(store);
        else if (auto load = dyn_cast<dist::LoadOp>(op))
          uses[load.getValueAttr().getAttr()].loads.push_back(load);
        else
          for (NamedAttribute attribute : op.getAttrs())
            attribute.getValue().walk([&](FlatSymbolRefAttr name) { uses[name.getAttr()].other = true; });
    return uses;
  }

  /// Says of values that they lie elsewhere. Returns when transfers back must begin, by load, in seconds from the start
  /// of its fragment; of those without, nothing is known.
  llvm::DenseMap<Operation *, double> chooseValues(llvm::MapVector<StringAttr, ValueUses> &uses,
                                                   std::vector<Rule> &parsed) {
    ReturnTimes times(getOperation());
    for (auto value : getOperation().getOps<dist::ValueOp>()) {
      const ValueUses &own = uses[value.getSymNameAttr()];
      const dist::MemorySpace space = isActivation(value, own) ? spaceFor(own, parsed) : device;
      if (space == device)
        continue;
      chosen_.insert(value);
      value.setElsewhere(space);
      if (own.stores.size() == 1 && own.loads.size() == 1 && firstUse(own.loads[0]))
        times.add({value, own.stores[0], own.loads[0], firstUse(own.loads[0])});
    }
    llvm::DenseMap<Operation *, double> returns;
    for (ReturnTimes::Verdict verdict : times.decide())
      if (verdict.returnBy)
        returns[verdict.load] = *verdict.returnBy;
      else {
        chosen_.erase(verdict.value);
        verdict.value.removeElsewhereAttr();
      }
    return returns;
  }

  bool isActivation(dist::ValueOp value, const ValueUses &uses) const {
    const auto phaseOf = [](Operation *op) { return cast<dist::FragmentOp>(op->getParentOp()).getPhase(); };
    const auto type = cast<RankedTensorType>(value.getType());
    return !value.getInput() && !value.getBucket() && !uses.other && !uses.stores.empty() && !uses.loads.empty() &&
           type.getNumElements() * type.getElementTypeBitWidth() / 8 >= leastBytes &&
           llvm::all_of(uses.stores, [&](dist::StoreOp op) { return phaseOf(op) == dist::Phase::Forward; }) &&
           llvm::all_of(uses.loads, [&](dist::LoadOp op) {
             return phaseOf(op) == dist::Phase::Backward || phaseOf(op) == dist::Phase::Weight;
           });
  }

  /// The first rule decides whose expression matches the name of the op that computes the tensor. Without rules all
  /// goes to the host.
  static dist::MemorySpace spaceFor(const ValueUses &uses, std::vector<Rule> &parsed) {
    if (parsed.empty())
      return host;
    Operation *computes = dist::StoreOp(uses.stores[0]).getTensor().getDefiningOp();
    const std::string name = computes ? train::locationName(computes->getLoc()) : "";
    for (Rule &rule : parsed)
      if (rule.modules.match(name)) {
        rule.matched = true;
        return rule.space;
      }
    return device;
  }

  static void evict(dist::StoreOp store, dist::MemorySpace space) {
    OpBuilder b(store);
    if (Operation *computes = store.getTensor().getDefiningOp())
      b.setInsertionPointAfter(computes);
    const Location location = store.getTensor().getLoc();
    const Type type = store.getTensor().getType();
    Value there = dist::TransferOp::create(b, location, type, store.getTensor(), device, host);
    if (space == nvme)
      there = dist::TransferOp::create(b, location, type, there, host, nvme);
    store->moveAfter(there.getDefiningOp());
    store.getTensorMutable().assign(there);
  }

  /// The loads of one fragment. What lies on NVMe is read into host memory one place earlier.
  static void fetch(SmallVector<dist::LoadOp> &loads, const llvm::DenseMap<Operation *, double> &returns) {
    llvm::erase_if(loads, [&](dist::LoadOp load) { return !firstUse(load); });
    if (loads.empty())
      return;
    llvm::stable_sort(loads, [&](dist::LoadOp a, dist::LoadOp b) {
      return firstUse(a) != firstUse(b) && firstUse(a)->isBeforeInBlock(firstUse(b));
    });
    const FragmentTimes times(cast<dist::FragmentOp>(loads[0]->getParentOp()));
    Operation *front = &loads[0]->getBlock()->front();
    SmallVector<Operation *> places; // in front of which each comes back
    for (size_t i = 0; i < loads.size(); ++i) {
      Operation *place = i == 0 ? front : firstUse(loads[i - 1]);
      if (const auto by = returns.find(loads[i]); by != returns.end())
        if (Operation *known = times.at(by->second); known->isBeforeInBlock(place))
          place = known;
      places.push_back(place);
    }
    for (size_t i = 0; i < loads.size(); ++i)
      bring(loads[i], i < 2 ? front : places[i - 1], places[i]);
  }

  /// In front of `read` from NVMe to the host, in front of `place` from there to the device.
  static void bring(dist::LoadOp load, Operation *read, Operation *place) {
    const bool isInFile =
        SymbolTable::lookupNearestSymbolFrom<dist::ValueOp>(load, load.getValueAttr()).getSpace() == nvme;
    if (!isInFile || place->isBeforeInBlock(read))
      read = place;
    if (load.getOperation() != read)
      load->moveBefore(read);
    OpBuilder b(load->getContext());
    b.setInsertionPointAfter(load);
    Value held = load.getResult();
    if (isInFile)
      held = dist::TransferOp::create(b, load.getLoc(), load.getType(), held, nvme, host);
    if (read != place)
      b.setInsertionPoint(place);
    auto back = dist::TransferOp::create(b, load.getLoc(), load.getType(), held, host, device);
    load.getResult().replaceUsesWithIf(back, [&](OpOperand &use) { return !isa<dist::TransferOp>(use.getOwner()); });
  }

  llvm::DenseSet<Operation *> chosen_; // values
};

} // namespace
