//===- AssignOffsets.h - places in the arenas of one role -------------------===//
#pragma once

#include "dialects/Plan/Plan.h"

#include <cstdint>

namespace ds {

/// Sets offsets and lives of the role's buffers, and the bytes of its arenas. `alignment` is a power of two.
mlir::LogicalResult assignOffsets(plan::RoleOp role, int64_t alignment);

} // namespace ds
