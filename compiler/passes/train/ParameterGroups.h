//===- ParameterGroups.h - which parameters are updated otherwise ---------===//
#pragma once

#include "mlir/IR/BuiltinOps.h"

#include <deque>
#include <optional>
#include <string>

namespace ds {

/// Of the parameters whose names match, and no group's before.
struct ParameterGroup {
  std::string match;                 ///< a regular expression
  std::optional<double> weightDecay; ///< none: the optimizer's
  double lrFactor = 1;               ///< of the schedule's rate
  bool used = false;
  mlir::Value rate = {}; ///< of this update, once it is made
};

class ParameterGroups {
public:
  /// Reads a list such as `{match = "bias", weight_decay = 0.0, lr_factor = 0.5}`; reports on `module`.
  mlir::LogicalResult read(llvm::StringRef list, mlir::ModuleOp module);
  /// The first group of that name, or null.
  ParameterGroup *of(llvm::StringRef parameter);
  /// Reports on `module` a group that has no parameter; asked when all parameters have asked for theirs.
  mlir::LogicalResult requireUsed(mlir::ModuleOp module) const;

private:
  std::deque<ParameterGroup> groups_;
};

} // namespace ds
