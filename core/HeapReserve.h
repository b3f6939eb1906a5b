//===- HeapReserve.h - memory that later allocations are sure to find -----===//
#pragma once

#include <cstddef>

namespace ds {

/// Grows the heap so that the next `bytes` of small allocations need nothing of the system. Where there is not enough,
/// it is operator new that fails, whose handler can say so: MLIR fills tables of interfaces by plain malloc and does
/// not look at the result (mlir/Support/InterfaceSupport.h).
void reserveHeap(size_t bytes);

/// More than the tables of all dialects take.
constexpr size_t dialectBytes = 4 << 20;

} // namespace ds
