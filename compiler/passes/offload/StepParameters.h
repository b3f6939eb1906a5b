//===- StepParameters.h - parameters that come to the device once a step ----===//
#pragma once

#include "dialects/Plan/Plan.h"

#include "mlir/IR/Builders.h"

#include <cstdint>

namespace ds {

/// Moves the parameters of a role that the host updates, of at least `leastBytes`, to a memory space. Each comes to the
/// device, rounded where it is only used so, in front of its first use in a run of a program, and stays to the last.
/// `hostLookups`: the host looks few rows up, and they alone come.
void bringForStep(plan::RoleOp role, plan::MemorySpace space, int64_t leastBytes, bool hostLookups);

/// A buffer in device memory for a parameter that stays there for several calls of a step.
plan::BufferOp makeNear(mlir::OpBuilder &members, plan::BufferOp away);
/// All of the buffer of operand `index` of a command comes to `near`: from a file by way of host memory, for which
/// `reads` says where its copy stands.
void bringWhole(mlir::OpBuilder &members, plan::CommandOpInterface command, unsigned index, mlir::Value near,
                mlir::OpBuilder &reads, mlir::OpBuilder &comes);

} // namespace ds
