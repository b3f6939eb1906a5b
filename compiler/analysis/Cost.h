//===- Cost.h - how long ops take, roughly ------------------------------------===//
#pragma once

#include "mlir/IR/Operation.h"

namespace ds {

/// Seconds of one op on one rank: products at 100 GFLOP/s, and every tensor read or written once at 10 GB/s; views are
/// free. Only ratios matter: they decide where a model is cut.
double seconds(mlir::Operation *op);

/// Seconds to hand a byte to another rank.
inline constexpr double secondsPerMessageByte = 1e-10;

} // namespace ds
