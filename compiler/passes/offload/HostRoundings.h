//===- HostRoundings.h - parameters are rounded where they lie ------------===//
#pragma once

#include "compiler/passes/offload/StepStart.h"
#include "dialects/Plan/Plan.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SmallVector.h"

namespace ds {

/// Whether it is a kernel that rounds a tensor to a smaller type of float, and does nothing else, wherever it stands in
/// its routine. The host makes the same bits of it as the device does, and half the bytes come to the device.
bool isRounding(mlir::Operation *op);

/// The first op of a routine behind lookups on the host before which nothing that comes is used: their rows come first.
mlir::Operation *behindLookups(plan::RoutineOp routine, llvm::function_ref<bool(mlir::Value)> isAway,
                               llvm::function_ref<bool(plan::CommandOpInterface, mlir::Value)> isLeft);

/// The roundings that a step makes before its passes (ds-round-once) and that the host makes. They move from the
/// routine of phase gather to starts, in the order in which the passes use what they make: the first pass waits for
/// what it uses, and not for the rest.
class StepRoundings {
public:
  /// `isLeft`: whether the host makes a rounding.
  StepRoundings(plan::RoleOp role, LayerGroups &groups, llvm::function_ref<bool(plan::CommandOpInterface)> isLeft);

  /// Moves what makes a buffer, if that is not done yet, to the start ahead of a routine that uses it.
  void moveFor(mlir::Value buffer, plan::RoutineOp user);
  /// Erases routines that have lost all that they did.
  void eraseEmptied();

private:
  plan::RoleOp role_;
  LayerGroups &groups_;
  llvm::SmallVector<plan::RoutineOp> routines_;                                         // of phase gather
  llvm::DenseMap<mlir::Value, std::pair<mlir::Operation *, mlir::Operation *>> makers_; // rounding and copy; looked up
};

} // namespace ds
