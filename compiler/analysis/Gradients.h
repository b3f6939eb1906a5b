//===- Gradients.h - which variable is whose gradient -----------------------===//
#pragma once

#include "dialects/Train/Train.h"

#include "llvm/ADT/DenseMap.h"

namespace ds {

/// Looks up the gradients of a module's parameters.
class Gradients {
public:
  explicit Gradients(mlir::ModuleOp module) {
    for (auto variable : module.getOps<train::VariableOp>())
      if (variable.getKind() == train::VariableKind::Gradient && variable.getOf())
        byParameter_[variable.getOfAttr().getAttr()] = variable;
  }

  /// Null: the parameter is not trained.
  train::VariableOp of(mlir::StringAttr parameter) const { return byParameter_.lookup(parameter); }

private:
  llvm::DenseMap<mlir::StringAttr, train::VariableOp> byParameter_; // looked up, never iterated
};

} // namespace ds
