//===- VariableUses.cpp - who reads and writes a variable in one block ------===//
#include "compiler/analysis/VariableUses.h"

#include "mlir/IR/BuiltinAttributes.h"

using namespace mlir;
using namespace ds;

VariableUses::VariableUses(Block &block) {
  int64_t position = 0;
  for (Operation &op : block) {
    position_[&op] = position;
    for (NamedAttribute attribute : op.getAttrDictionary())
      if (auto name = dyn_cast<FlatSymbolRefAttr>(attribute.getValue()))
        ++mentions_[name.getAttr()];
    for (StringAttr name : train::writtenVariables(&op))
      writes_[name].push_back(position);
    ++position;
  }
}

bool VariableUses::isReadOutlived(train::ReadOp read) const {
  auto writes = writes_.find(read.getVariableAttr().getAttr());
  if (writes == writes_.end())
    return false;
  const int64_t from = position_.lookup(read), to = lastUse(read.getResult());
  return llvm::any_of(writes->second, [&](int64_t write) { return from < write && write < to; });
}

int64_t VariableUses::lastUse(Value value) const {
  int64_t last = -1;
  for (Operation *user : value.getUsers())
    last = std::max(last, isa<train::ReshapeOp>(user) ? lastUse(user->getResult(0)) : position_.lookup(user));
  return last;
}
