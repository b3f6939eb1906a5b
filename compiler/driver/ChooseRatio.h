//===- ChooseRatio.h - how much optimizer state leaves device memory ------===//
#pragma once

#include "compiler/config/Config.h"
#include "compiler/driver/TryPlan.h"

#include "mlir/IR/BuiltinOps.h"

namespace ds::driver {

/// What zero_optimization.offload_optimizer.ratio "auto" stands for: of 1, 0.9, ... 0 the largest whose step is, by the
/// clock of reports, at most a hundredth longer than the shortest of those whose plans fit into memory. 1 where nothing
/// waits for transfers, or nothing says how long they take. Throws what `plan` throws.
CompileResult compileWithRatio(const CompileRequest &request, const Planner &plan);

/// Tells the user where a ratio below 1 that was written changes nothing: the smallest part whose state can stay is
/// larger than the share that may.
void noteRatio(mlir::ModuleOp planned, const config::Config &config);

} // namespace ds::driver
