//===- Stages.cpp - pipeline stages and their fragments -----------------------===//
#include "compiler/analysis/Stages.h"

using namespace mlir;
using namespace ds;

/// A fragment's stage or coordinate.
static int64_t numberOf(dist::FragmentOp fragment) {
  return int64_t(fragment.getStage() ? *fragment.getStage() : *fragment.getPipe());
}

SmallVector<dist::FragmentOp> ds::fragmentsOf(ModuleOp module, dist::Phase phase) {
  SmallVector<dist::FragmentOp> fragments;
  for (auto fragment : module.getOps<dist::FragmentOp>())
    if (fragment.getPhase() == phase)
      fragments.push_back(fragment);
  llvm::stable_sort(fragments, [](auto a, auto b) { return numberOf(a) < numberOf(b); });
  return fragments;
}

FragmentIndex::FragmentIndex(ModuleOp module) {
  for (auto fragment : module.getOps<dist::FragmentOp>()) {
    if (fragment.getStage())
      stages_ = std::max(stages_, int64_t(*fragment.getStage()) + 1);
    if (fragment.getAheadOf())
      receivers_[fragment.getAheadOfAttr().getAttr()] = fragment;
    else
      byNumber_[{int64_t(fragment.getPhase()), numberOf(fragment)}] = fragment;
  }
}

RoleUses::RoleUses(ModuleOp module) {
  const SymbolTable symbols(module);
  for (auto role : module.getOps<dist::RoleOp>()) {
    const auto index = int64_t(fragments_.size());
    auto &fragments = fragments_.emplace_back();
    role.walk([&](dist::CallOp call) { fragments.insert(symbols.lookup<dist::FragmentOp>(call.getFragment())); });
    for (dist::FragmentOp fragment : fragments)
      for (Operation &op : fragment.getBody().front())
        for (NamedAttribute attribute : op.getAttrDictionary())
          if (auto name = dyn_cast<FlatSymbolRefAttr>(attribute.getValue())) {
            auto &roles = roles_[name.getAttr()];
            if (roles.empty() || roles.back() != index)
              roles.push_back(index);
          }
  }
}

ArrayRef<int64_t> RoleUses::rolesOf(StringAttr symbol) const {
  const auto it = roles_.find(symbol);
  return it == roles_.end() ? ArrayRef<int64_t>() : ArrayRef(it->second);
}
