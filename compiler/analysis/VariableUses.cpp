//===- VariableUses.cpp - who writes a variable in one fragment -------------===//
#include "compiler/analysis/VariableUses.h"

using namespace mlir;
using namespace ds;

/// The variables that an op writes.
static SmallVector<StringAttr, 3> writtenBy(Operation *op) {
  auto kernel = dyn_cast<dist::KernelOp>(op);
  if (!kernel)
    return train::writtenVariables(op);
  SmallVector<StringAttr, 3> names;
  for (const dist::KernelOp::Operand &operand : kernel.getOperandsOfKernel())
    if (operand.variable && operand.writes)
      names.push_back(operand.variable);
  return names;
}

VariableUses::VariableUses(Block &block) {
  int64_t position = 0;
  for (Operation &op : block) {
    position_[&op] = position;
    for (StringAttr name : writtenBy(&op))
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
