//===- LayerSums.h - gradients that leave once for all micro-batches ------===//
#pragma once

#include "dialects/Plan/Plan.h"

#include "llvm/ADT/SetVector.h"

namespace ds {

/// Where all micro-batches go through a layer before the next one (StepStart.h), a gradient that one layer makes is
/// summed in device memory, from zeros that are written in front of the layer, and leaves for its buffer in `moved`
/// behind it. Squares for the norm are taken before it leaves. What is dealt with is no longer in `moved`. Sums that
/// the host makes of few rows, or that ranks share out in the update, stay in it.
void leaveByLayer(plan::RoleOp role, llvm::SetVector<mlir::Operation *> &moved);

} // namespace ds
