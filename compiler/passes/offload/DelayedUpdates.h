//===- DelayedUpdates.h - updates of the step before, beside all of a step ---===//
#pragma once

#include "dialects/Plan/Plan.h"

#include "llvm/ADT/STLFunctionalExtras.h"

namespace ds {

/// Updates by gradients of the step before (ds-delay-updates) need nothing that the step computes. Moves those that
/// `mayMove` out of the update, each to the first place of the step, in a routine that is called once, behind which
/// nothing but it touches the parameter: where its copy for the step has gone to the device, if it lies in host memory.
/// They follow each other as this step's gradients will take the places of those that they read; layer by layer where
/// all micro-batches of one run before the next.
void moveDelayedUpdates(plan::RoleOp role, llvm::function_ref<bool(plan::CommandOpInterface)> mayMove);

} // namespace ds
