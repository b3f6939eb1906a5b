//===- NarrowGathers.cpp - gather parameters in the type they are used in ------===//
//
// 1. Look at everything that holds a gathered bucket: results of gathers, and loads of values that keep them. It may be
//    narrow where every view of it is only cast, all to one smaller type of float.
// 2. What a value keeps is stored and loaded in one type: drop those of which a part may not be narrow, until nothing
//    changes.
// 3. Cast this rank's slice in front of the gather; what follows is of the smaller type, and the casts of views go.
// A cast is of each element by itself, so casting slices and gathering them gives the bits of gathering and casting.
// Half the bytes are sent and held. DeepSpeed's ZeRO stage 3 and FSDP's MixedPrecision(param_dtype) gather so, too.
//
//===----------------------------------------------------------------------===//
#include "compiler/analysis/BucketIndex.h"
#include "compiler/analysis/NarrowUses.h"
#include "compiler/passes/zero/Passes.h"

#include "llvm/ADT/MapVector.h"

#include <optional>

namespace ds {
#define GEN_PASS_DEF_NARROWGATHERS
#include "compiler/passes/zero/Passes.h.inc"
} // namespace ds

using namespace mlir;
using namespace ds;

namespace {

RankedTensorType withElement(Type tensor, Type element) { return cast<RankedTensorType>(tensor).clone(element); }

/// The type that a tensor's views are cast to: null if it has to stay, nothing if it has no view.
using Wanted = std::optional<Type>;

struct NarrowGathers : ds::impl::NarrowGathersBase<NarrowGathers> {
  void runOnOperation() override {
    wanted_.clear();
    kept_.clear();
    const SymbolTable symbols(getOperation());
    for (auto fragment : getOperation().getOps<dist::FragmentOp>())
      for (Operation &op : fragment.getBody().front())
        note(&op, symbols);
    while (settleKept()) {
    }
    for (auto &[whole, wanted] : wanted_)
      if (wanted && *wanted)
        narrow(whole, *wanted, symbols);
  }

private:
  /// Notes every tensor that holds a gathered bucket.
  void note(Operation *op, const SymbolTable &symbols) {
    if (auto load = dyn_cast<dist::LoadOp>(op); load && keepsBucket(load, symbols)) {
      wanted_[load.getResult()] = wantedOf(load.getResult());
      kept_[load.getValueAttr().getAttr()].push_back(load.getResult());
    }
    auto gather = dyn_cast<dist::AllGatherOp>(op);
    if (!gather || gather.getInto())
      return;
    for (auto [input, whole] : llvm::zip(gather.getInputs(), gather.getResults())) {
      wanted_[whole] = isa_and_present<train::ReadOp>(input.getDefiningOp()) ? wantedOf(whole) : Wanted(Type());
      for (Operation *user : whole.getUsers())
        if (auto store = dyn_cast<dist::StoreOp>(user))
          kept_[store.getValueAttr().getAttr()].push_back(whole);
    }
  }

  static bool keepsBucket(dist::LoadOp load, const SymbolTable &symbols) {
    auto value = symbols.lookup<dist::ValueOp>(load.getValueAttr().getAttr());
    return value && value.getBucket();
  }

  static Wanted wantedOf(Value whole) {
    Wanted common;
    for (Operation *user : whole.getUsers()) {
      if (isa<dist::StoreOp>(user))
        continue;
      auto view = dyn_cast<dist::ViewOp>(user);
      const Type type = view ? narrowTypeOf(view.getResult()) : Type();
      if (!type || (common && *common != type))
        return Type();
      common = type;
    }
    return common;
  }

  /// What a value keeps is of one type wherever it is stored and loaded. True if that changed what is wanted.
  bool settleKept() {
    bool changed = false;
    for (auto &[name, wholes] : kept_) {
      Wanted common;
      for (Value whole : wholes)
        if (const Wanted wanted = wanted_.lookup(whole))
          common = common && *common != *wanted ? Type() : *wanted;
      for (Value whole : wholes) {
        changed |= wanted_.lookup(whole) != common;
        wanted_[whole] = common;
      }
    }
    return changed;
  }

  static void narrow(Value whole, Type type, const SymbolTable &symbols) {
    if (auto gather = whole.getDefiningOp<dist::AllGatherOp>()) {
      OpOperand &input = gather->getOpOperand(cast<OpResult>(whole).getResultNumber());
      OpBuilder builder(gather);
      input.set(train::CastOp::create(builder, input.get().getLoc(), withElement(input.get().getType(), type),
                                      input.get(), TypeAttr::get(type)));
    }
    whole.setType(withElement(whole.getType(), type));
    for (Operation *user : llvm::make_early_inc_range(whole.getUsers()))
      if (auto view = dyn_cast<dist::ViewOp>(user))
        dropCasts(view, type);
      else
        narrowKept(cast<dist::StoreOp>(user), type, symbols);
  }

  static void dropCasts(dist::ViewOp view, Type type) {
    view.getResult().setType(withElement(view.getType(), type));
    for (Operation *cast : llvm::make_early_inc_range(view->getUsers())) {
      cast->getResult(0).replaceAllUsesWith(view.getResult());
      cast->erase();
    }
  }

  static void narrowKept(dist::StoreOp store, Type type, const SymbolTable &symbols) {
    auto value = symbols.lookup<dist::ValueOp>(store.getValueAttr().getAttr());
    value.setType(withElement(value.getType(), type));
  }

  llvm::MapVector<Value, Wanted> wanted_;                // by what holds a gathered bucket
  llvm::MapVector<StringAttr, SmallVector<Value>> kept_; // by value: what stores into it and loads it
};

} // namespace
