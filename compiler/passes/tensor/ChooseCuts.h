//===- ChooseCuts.h - which parameters are cut, and where --------------------===//
#pragma once

#include "compiler/passes/tensor/PartSweep.h"

#include "llvm/ADT/MapVector.h"

namespace ds {

/// Of each parameter that is cut, what a rank of axis tensor has of it.
using Cuts = llvm::MapVector<mlir::StringAttr, Part>;

/// Chooses by the sweep of @microbatch. Empty where nothing is worth it, or nothing can be cut.
Cuts chooseCuts(mlir::ModuleOp module, PartSweep &sweep, int64_t ranks);

} // namespace ds
