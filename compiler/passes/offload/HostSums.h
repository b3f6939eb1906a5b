//===- HostSums.h - gradients that the host makes of few rows -------------===//
#pragma once

#include "dialects/Plan/Plan.h"

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/SmallVector.h"

#include <cstdint>

namespace ds {

/// The gradient of a lookup is as large as the table, but made of few rows. Where it is a summand of a gradient that
/// lies on the host, the host makes it of these and adds it, in the same order, to what has left before. So of a table
/// that is used twice, as GPT-2's embedding is, nothing large leaves at the end of the backward.
struct HostSums {
  llvm::SetVector<mlir::Operation *> kernels; ///< that the host runs
  llvm::SetVector<mlir::Operation *> buffers; ///< between them, which nothing else names
};

/// Of a routine; `isThere`: gradients on the host that no collective names.
HostSums findHostSums(plan::RoutineOp routine, llvm::function_ref<bool(mlir::Value)> isThere);

/// A summand of these that the device computes in the routine, and that leaves when it is there.
struct LeavingSummand {
  mlir::Operation *behind;
  int64_t bytes;
};
llvm::SmallVector<LeavingSummand> leavingFor(const HostSums &sums);

} // namespace ds
