//===- OffloadActivations.cpp - keep what the backward reads in host memory ---===//
//
// 1. Choose the values that only forward fragments store and only backward ones load; what is small, sent or received
//    stays.
// 2. A store becomes a transfer to the host behind what computes the tensor, stored there.
// 3. A load becomes a transfer back, in front of the first use of the tensor that is used before: one is on its way
//    while another is used, and no more lies in device memory.
// Rhu et al., vDNN, MICRO 2016; ZeRO-Offload's cpu_checkpointing. Lifetimes are known here, so all of it is decided
// before the run.
//
//===----------------------------------------------------------------------===//
#include "compiler/passes/offload/Passes.h"
#include "dialects/Dist/Dist.h"

#include "llvm/ADT/MapVector.h"

namespace ds {
#define GEN_PASS_DEF_OFFLOADACTIVATIONS
#include "compiler/passes/offload/Passes.h.inc"
} // namespace ds

using namespace mlir;
using namespace ds;

namespace {

constexpr dist::MemorySpace device = dist::MemorySpace::Device, host = dist::MemorySpace::Host;

/// Who stores and loads a value; whether anybody else names it.
struct ValueUses {
  SmallVector<dist::StoreOp> stores;
  SmallVector<dist::LoadOp> loads;
  bool other = false;
};

struct OffloadActivations : ds::impl::OffloadActivationsBase<OffloadActivations> {
  using OffloadActivationsBase::OffloadActivationsBase;

  void runOnOperation() override {
    if (leastBytes < 0) {
      getOperation().emitError() << "least-bytes is " << leastBytes.getValue() << "; it must not be negative";
      return signalPassFailure();
    }
    llvm::MapVector<StringAttr, ValueUses> uses = usesOfValues();
    llvm::MapVector<Operation *, SmallVector<dist::LoadOp>> loads; // by fragment
    for (auto value : getOperation().getOps<dist::ValueOp>()) {
      ValueUses &own = uses[value.getSymNameAttr()];
      if (!isActivation(value, own))
        continue;
      value.setElsewhere(host);
      for (dist::StoreOp store : own.stores)
        evict(store);
      for (dist::LoadOp load : own.loads)
        loads[load->getParentOp()].push_back(load);
    }
    for (auto &[fragment, own] : loads)
      fetch(own);
  }

private:
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

  static void evict(dist::StoreOp store) {
    OpBuilder b(store);
    if (Operation *computes = store.getTensor().getDefiningOp())
      b.setInsertionPointAfter(computes);
    Value there = dist::TransferOp::create(b, store.getTensor().getLoc(), store.getTensor().getType(),
                                           store.getTensor(), device, host);
    store->moveAfter(there.getDefiningOp());
    store.getTensorMutable().assign(there);
  }

  /// The loads of one fragment.
  static void fetch(SmallVector<dist::LoadOp> &loads) {
    const auto firstUse = [](dist::LoadOp load) {
      Operation *first = nullptr;
      for (Operation *user : load.getResult().getUsers())
        if (!first || user->isBeforeInBlock(first))
          first = user;
      return first;
    };
    llvm::erase_if(loads, [&](dist::LoadOp load) { return !firstUse(load); });
    llvm::stable_sort(loads, [&](dist::LoadOp a, dist::LoadOp b) {
      return firstUse(a) != firstUse(b) && firstUse(a)->isBeforeInBlock(firstUse(b));
    });
    SmallVector<Operation *> places; // in front of which each comes back
    for (size_t i = 0; i < loads.size(); ++i)
      places.push_back(i == 0 ? &loads[0]->getBlock()->front() : firstUse(loads[i - 1]));
    for (auto [load, place] : llvm::zip(loads, places)) {
      OpBuilder b(place);
      if (load.getOperation() != place)
        load->moveBefore(place);
      b.setInsertionPointAfter(load);
      auto back = dist::TransferOp::create(b, load.getLoc(), load.getType(), load.getResult(), host, device);
      load.getResult().replaceAllUsesExcept(back, back);
    }
  }
};

} // namespace
