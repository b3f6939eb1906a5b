//===- Cost.h - how long ops take, roughly ------------------------------------===//
#pragma once

#include "mlir/IR/Operation.h"

namespace ds {

/// Seconds of one op on one rank by kernels/CostModel.h, which decide where a model is cut; views are free.
double seconds(mlir::Operation *op);

/// Seconds to hand a byte to another rank.
inline constexpr double secondsPerMessageByte = 1e-10;

} // namespace ds
