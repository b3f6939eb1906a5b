//===- HeldOperands.h - what stays on the device from a forward to its backward ---===//
#pragma once

#include "dialects/Plan/Plan.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SmallVector.h"

#include <utility>

namespace ds {

/// An operand of a command.
using OperandUse = std::pair<mlir::Operation *, unsigned>;

/// Of parameters that come to the device for each use: what a forward reads last and the backward of the same
/// micro-batch first, the use of the forward by that of the backward, to be looked up. It may stay in between, where a
/// step needs most memory: the device holds it on both sides. Nothing where anything but that backward is called behind
/// the forward. `usersIn`: commands of a routine that parameters come for; `comes`: whether a buffer is one of those.
llvm::DenseMap<OperandUse, OperandUse>
findHeld(plan::RoleOp role, llvm::function_ref<llvm::SmallVector<plan::CommandOpInterface>(plan::RoutineOp)> usersIn,
         llvm::function_ref<bool(mlir::Value)> comes);

} // namespace ds
