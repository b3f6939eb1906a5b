//===- RoleSteps.h - what passes do to one role, for passes that try it -----===//
#pragma once

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

/// ds-assign-offsets: offsets and lives of buffers, bytes of arenas, if these are fewer than `below` together; whether
/// they were. `alignment` is a power of two.
mlir::FailureOr<bool> assignOffsets(plan::RoleOp role, int64_t alignment,
                                    int64_t below = std::numeric_limits<int64_t>::max());

/// ds-order-for-memory: of a role with offsets, another order of commands if its arenas are smaller with it.
mlir::LogicalResult orderForMemory(plan::RoleOp role, int64_t alignment);

/// Bytes of all arenas; nothing if they have no offsets yet.
std::optional<int64_t> arenaBytes(plan::RoleOp role);

} // namespace ds
