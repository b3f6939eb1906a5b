//===- StepStart.h - what a step begins with, for all of its calls --------===//
#pragma once

#include "dialects/Plan/Plan.h"

namespace ds {

/// The routine that program "step" of a role calls first, of phase begin; it is made, empty, where there is none. Its
/// call is of the last micro-batch, so that every call of the step may wait for what it signals: an event counts
/// micro-batches up, and says at once that it is done for all.
plan::RoutineOp stepStart(plan::RoleOp role);

/// The calls of a routine in a program.
int64_t callsIn(plan::ProgramOp program, mlir::Attribute routine);

} // namespace ds
