//===- Stages.cpp - pipeline stages and their fragments -----------------------===//
#include "compiler/analysis/Stages.h"

#include "compiler/analysis/BucketIndex.h"

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
  const BucketIndex buckets(module);
  for (auto role : module.getOps<dist::RoleOp>()) {
    const auto index = int64_t(fragments_.size());
    auto &fragments = fragments_.emplace_back();
    role.walk([&](dist::CallOp call) { fragments.insert(symbols.lookup<dist::FragmentOp>(call.getFragment())); });
    for (dist::FragmentOp fragment : fragments)
      for (Operation &op : fragment.getBody().front()) {
        for (NamedAttribute attribute : op.getAttrDictionary())
          if (auto name = dyn_cast<FlatSymbolRefAttr>(attribute.getValue()))
            note(roles_, name.getAttr(), index);
        if (fragment.getPhase() == dist::Phase::Update)
          continue;
        for (StringAttr name : train::writtenVariables(&op)) {
          note(adders_, name, index);
          if (dist::BucketOp bucket = buckets.bucketOf(name))
            note(adders_, bucket.getSymNameAttr(), index);
        }
        if (auto collective = dyn_cast<dist::CollectiveOpInterface>(op); collective && collective.getIntoAttr())
          for (auto name : collective.getIntoAttr().getAsRange<FlatSymbolRefAttr>())
            note(adders_, name.getAttr(), index);
      }
  }
}

void RoleUses::note(RolesOf &map, StringAttr symbol, int64_t role) {
  if (auto &roles = map[symbol]; roles.empty() || roles.back() != role)
    roles.push_back(role);
}

ArrayRef<int64_t> RoleUses::lookUp(const RolesOf &map, StringAttr symbol) {
  const auto it = map.find(symbol);
  return it == map.end() ? ArrayRef<int64_t>() : ArrayRef(it->second);
}
