//===- Stages.cpp - pipeline stages, and how their fragments are called -------===//
#include "compiler/analysis/Stages.h"

using namespace mlir;
using namespace ds;

SmallVector<dist::FragmentOp> ds::fragmentsOf(ModuleOp module, StringRef kind) {
  SmallVector<dist::FragmentOp> fragments;
  for (auto fragment : module.getOps<dist::FragmentOp>())
    if (fragmentKind(fragment.getSymName()) == kind)
      fragments.push_back(fragment);
  return fragments;
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
