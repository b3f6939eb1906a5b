//===- LayerSums.h - gradients that leave once for all micro-batches ------===//
#pragma once

#include "dialects/Plan/Plan.h"

#include "llvm/ADT/SetVector.h"

namespace ds {

/// Where all micro-batches go through a layer before the next one (StepStart.h), a gradient is summed in device memory,
/// from zeros that are written in front of the first layer that makes it, and leaves for its buffer in `moved` behind
/// that layer. Squares for the norm are taken before it leaves, and it is no longer in `moved`; it is, if another layer
/// adds to it, too. Sums that the host makes of few rows, and those that ranks share out in the update, stay as they
/// are.
void leaveByLayer(plan::RoleOp role, llvm::SetVector<mlir::Operation *> &moved);

} // namespace ds
