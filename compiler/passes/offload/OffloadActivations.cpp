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

#include <limits>
#include <memory>

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
    if (failed(parsed) || failed(requireValues()))
      return signalPassFailure();
    llvm::MapVector<StringAttr, ValueUses> uses = usesOfValues();
    const llvm::DenseMap<Operation *, double> returns = chooseValues(uses, *parsed);
    if (failed(requireMatches(*parsed)))
      return signalPassFailure();
    noteLeft(uses);
    llvm::MapVector<Operation *, SmallVector<dist::LoadOp>> loads; // by fragment
    for (auto value : getOperation().getOps<dist::ValueOp>()) {
      ValueUses &own = uses[value.getSymNameAttr()];
      if (!isActivation(value, own))
        continue;
      if (chosen_.contains(value))
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

  LogicalResult requireValues() {
    const SymbolTable symbols(getOperation());
    for (const std::string &name : values)
      if (!symbols.lookup<dist::ValueOp>(name))
        return getOperation().emitError() << "\"" << name << "\" is to leave device memory, but is no dist.value";
    return success();
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

  /// Names what left by a last rule that takes all, what is away longest first. Those are needed farthest in the
  /// future, when one has to make room (Belady).
  void noteLeft(llvm::MapVector<StringAttr, ValueUses> &uses) {
    if (leftByAll_.empty())
      return;
    llvm::MapVector<Operation *, std::unique_ptr<FragmentTimes>> times;
    const auto timesOf = [&](Operation *op) -> const FragmentTimes & {
      std::unique_ptr<FragmentTimes> &known = times[op->getParentOp()];
      if (!known)
        known = std::make_unique<FragmentTimes>(cast<dist::FragmentOp>(op->getParentOp()));
      return *known;
    };
    std::vector<std::pair<double, dist::ValueOp>> away; // less than nothing, seconds
    for (dist::ValueOp value : leftByAll_) {
      const ValueUses &own = uses[value.getSymNameAttr()];
      const FragmentTimes &forward = timesOf(own.stores[0]);
      double seconds = std::numeric_limits<double>::max();
      for (dist::LoadOp load : own.loads)
        if (Operation *use = firstUse(load))
          seconds = std::min(seconds, timesOf(load).begin(use));
      Operation *computes = dist::StoreOp(own.stores[0]).getTensor().getDefiningOp();
      away.push_back({(computes ? forward.begin(computes) : 0) - forward.end() - seconds, value});
    }
    llvm::stable_sort(away, [](const auto &a, const auto &b) { return a.first < b.first; });
    Builder b(&getContext());
    SmallVector<Attribute> names;
    SmallVector<int64_t> bytes;
    for (auto [seconds, value] : away) {
      names.push_back(b.getStringAttr(value.getSymName()));
      bytes.push_back(bytesOf(value));
    }
    getOperation()->setAttr(leftAttribute,
                            b.getDictionaryAttr({b.getNamedAttr("values", b.getArrayAttr(names)),
                                                 b.getNamedAttr("bytes", b.getDenseI64ArrayAttr(bytes))}));
  }

  /// Says of values that they lie elsewhere. Returns when transfers back must begin, by load, in seconds from the start
  /// of its fragment; of those without, nothing is known.
  llvm::DenseMap<Operation *, double> chooseValues(llvm::MapVector<StringAttr, ValueUses> &uses,
                                                   std::vector<Rule> &parsed) {
    ReturnTimes times(getOperation());
    for (auto value : getOperation().getOps<dist::ValueOp>()) {
      const ValueUses &own = uses[value.getSymNameAttr()];
      const dist::MemorySpace space = isActivation(value, own) ? spaceFor(value, own, parsed) : device;
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
    return !value.getInput() && !value.getBucket() && !value.getForStep() && !uses.other && !uses.stores.empty() &&
           !uses.loads.empty() && bytesOf(value) >= leastBytes &&
           llvm::all_of(uses.stores, [&](dist::StoreOp op) { return phaseOf(op) == dist::Phase::Forward; }) &&
           llvm::all_of(uses.loads, [&](dist::LoadOp op) {
             return phaseOf(op) == dist::Phase::Backward || phaseOf(op) == dist::Phase::Weight;
           });
  }

  static int64_t bytesOf(dist::ValueOp value) {
    const auto type = cast<RankedTensorType>(value.getType());
    return type.getNumElements() * type.getElementTypeBitWidth() / 8;
  }

  /// The first rule decides whose expression matches the name of the op that computes the tensor; else its own name.
  /// Without either all goes to the host.
  dist::MemorySpace spaceFor(dist::ValueOp value, const ValueUses &uses, std::vector<Rule> &parsed) {
    if (parsed.empty() && values.empty())
      return host;
    Operation *computes = dist::StoreOp(uses.stores[0]).getTensor().getDefiningOp();
    const std::string name = computes ? train::locationName(computes->getLoc()) : "";
    for (Rule &rule : parsed)
      if (rule.modules.match(name)) {
        rule.matched = true;
        if (&rule == &parsed.back() && rule.text == ".*" && rule.space == host)
          leftByAll_.push_back(value);
        return rule.space;
      }
    return llvm::is_contained(values, value.getSymName()) ? host : device;
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

  static bool isAway(dist::LoadOp load) { return spaceOf(load) != device; }

  static dist::MemorySpace spaceOf(dist::LoadOp load) {
    return SymbolTable::lookupNearestSymbolFrom<dist::ValueOp>(load, load.getValueAttr()).getSpace();
  }

  /// The loads of one fragment, also of what stays: one comes back when the one before it is used. What lies on NVMe is
  /// read into host memory one place earlier.
  static void fetch(SmallVector<dist::LoadOp> &loads, const llvm::DenseMap<Operation *, double> &returns) {
    llvm::erase_if(loads, [&](dist::LoadOp load) { return !firstUse(load); });
    if (llvm::none_of(loads, isAway))
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
      if (isAway(loads[i]))
        bring(loads[i], i < 2 ? front : places[i - 1], places[i]);
  }

  /// In front of `read` from NVMe to the host, in front of `place` from there to the device.
  static void bring(dist::LoadOp load, Operation *read, Operation *place) {
    const bool isInFile = spaceOf(load) == nvme;
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
  std::vector<dist::ValueOp> leftByAll_;
};

} // namespace
