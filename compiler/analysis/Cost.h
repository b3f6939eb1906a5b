//===- Cost.h - how long ops take, roughly ------------------------------------===//
#pragma once

#include "dialects/Plan/Plan.h"

#include "mlir/IR/Operation.h"

namespace ds {

/// Of a module: DenseF64Array of the machine's rates (core/CostModel.h), in the order of their declaration; products of
/// float32 may be rounded to TF32 where tf32 stands for float32. None: unknown.
inline constexpr llvm::StringLiteral ratesAttribute = "dist.rates";

/// Seconds of one op on one rank by core/CostModel.h, which decide where a model is cut; views are free.
double seconds(mlir::Operation *op);

/// Seconds of a command of a plan that is no copy between memories, by the same model. As runtime/plan/run/StepClock.h
/// has it in reports.
double seconds(plan::CommandOpInterface command);
/// The same, by the processors beside a GPU.
double secondsOnHost(plan::CommandOpInterface command);

/// How fast bytes move one way. 0 bytes a second: unknown.
struct LinkSpeed {
  double bytesPerSecond = 0, latency = 0;
  double seconds(double bytes) const { return latency + bytes / bytesPerSecond; }
};

/// Attribute of a module: {"device-host" = array<f64: bytes a second, seconds of latency>, "host-nvme" = ...}, of the
/// machine that it is compiled for.
inline constexpr llvm::StringLiteral linksAttribute = "dist.links";
/// Of the module that an op is in or is.
LinkSpeed linkSpeed(mlir::Operation *op, llvm::StringRef between);

/// Seconds to hand a byte to another rank.
inline constexpr double secondsPerMessageByte = 1e-10;

} // namespace ds
