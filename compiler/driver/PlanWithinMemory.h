//===- PlanWithinMemory.h - as little recompute as fits -------------------===//
#pragma once

#include "compiler/config/Config.h"
#include "compiler/driver/Diagnostics.h"
#include "compiler/passes/Passes.h"
#include "runtime/plan/plan.pb.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

#include <cstdint>
#include <vector>

namespace ds::driver {

/// What the passes are to do for a configuration; nothing for "auto", where `planWithinMemory` decides.
ChooseRecomputeOptions recomputeOptions(const config::Recompute &recompute);

/// Plans `module`, which is differentiated, for at most `room` bytes of device memory on every rank. It stays as it is
/// but for `linksAttribute`, which it loses if what can be hidden is not enough: then all leaves that is to.
/// `searches`: at a low level of recompute that fits, which is written into `options`, or, where none is found, at the
/// level that needs least; else at the level that `options` ask for. Levels are tried in an order such that more room
/// never means a higher level, even where a higher level needs more.
mlir::OwningOpRef<mlir::ModuleOp> planWithinMemory(mlir::ModuleOp module, int64_t room, bool searches,
                                                   CompileOptions &options, const DiagnosticCollector &diagnostics);

/// The same of the first of `choices` of what leaves device memory whose plan fits into `room`, or the last; writes it
/// into `options`. With the first, nothing is computed again to make it fit: others may cost less. `searches`: levels
/// of recompute are tried, else that of `options` is taken. Where a last rule takes all activations, as few of them
/// leave as are found to do.
mlir::OwningOpRef<mlir::ModuleOp> planOffloaded(mlir::ModuleOp module, int64_t room, bool searches,
                                                const std::vector<OffloadOptions> &choices, CompileOptions &options,
                                                const DiagnosticCollector &diagnostics);

/// Notes in `plan` what a planned module computes again. Throws ds::Error for a level that was asked for and that the
/// model does not have.
void noteRecompute(mlir::ModuleOp module, const config::Recompute &asked, plan::proto::Plan &plan);

} // namespace ds::driver
