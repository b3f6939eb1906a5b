//===- RoleSteps.h - what passes do to one role, for passes that try it -----===//
#pragma once

#include "compiler/passes/plan/KnownSolutions.h"
#include "dialects/Plan/Plan.h"

#include <cstdint>
#include <limits>

namespace ds {

/// ds-order-queues: commands on their queues, ordered by events; slots of values are counted. Compute waits for the
/// host and for files as if they were `patience` times slower than the model says.
void orderQueues(plan::RoleOp role, double patience);

/// Unit attribute of a module: what lives for good lies at the start of each arena, constants behind the rest of it, so
/// that plans of one model for several lengths have their state in one place.
inline constexpr llvm::StringLiteral stateFirstAttribute = "plan.state_first";

/// Of arenas.
struct RoleBytes {
  int64_t all = 0, device = 0;
};

/// How offsets are found.
struct Placing {
  int64_t alignment; ///< of every offset, bytes; a power of two
  KnownSolutions &known;
  int64_t enough = 0; ///< bytes: a device arena of no more will do
};

/// ds-assign-offsets: offsets and lives of buffers, bytes of arenas, if these are fewer than `below` together; whether
/// they were.
mlir::FailureOr<bool> assignOffsets(plan::RoleOp role, const Placing &placing,
                                    int64_t below = std::numeric_limits<int64_t>::max());

/// ds-order-for-memory: of a role with offsets, another order of commands if its arenas are smaller with it.
mlir::LogicalResult orderForMemory(plan::RoleOp role, const Placing &placing);

/// Bytes of all arenas; nothing if they have no offsets yet.
std::optional<RoleBytes> arenaBytes(plan::RoleOp role);

/// What is alive at once at most, as commands stand: no offsets need less.
mlir::FailureOr<RoleBytes> leastBytes(plan::RoleOp role, int64_t alignment);

/// The same in the order that orderForMemory would try.
mlir::FailureOr<RoleBytes> leastBytesReordered(plan::RoleOp role, const Placing &placing);

/// What outlives a micro-batch, state and gradients and values of the step, as far as it is alive at once, in device
/// memory.
int64_t stateBytes(plan::RoleOp role);

/// ds-reuse-dying-operands: results of all kernels over operands, or of the gradient of the loss alone.
void reuseDyingOperands(plan::RoleOp role, bool all);

/// Whether a role holds some value of several micro-batches at once.
bool overlapsMicrobatches(plan::RoleOp role);

} // namespace ds
