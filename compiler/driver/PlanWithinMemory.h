//===- PlanWithinMemory.h - as little recompute as fits -------------------===//
#pragma once

#include "compiler/config/Config.h"
#include "compiler/driver/Diagnostics.h"
#include "compiler/passes/Passes.h"
#include "runtime/plan/plan.pb.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

#include <cstdint>

namespace ds::driver {

/// Plans `module`, which is differentiated, with parameters that are rounded once a step, not in each micro-batch, for
/// which each takes memory. Null where nothing is rounded so, and where that does not fit into `room`: from then on
/// `options` do without. 0 bytes: the room is unknown. Else as planWithinMemory, at the level that `options` ask for.
mlir::OwningOpRef<mlir::ModuleOp> planRoundingOnce(mlir::ModuleOp module, int64_t room, bool searches,
                                                   CompileOptions &options, const DiagnosticCollector &diagnostics);

/// Plans `module`, which is differentiated, for at most `room` bytes of device memory on every rank. It stays as it is
/// but for `linksAttribute`, which it loses if what can be hidden is not enough: then all leaves that is to.
/// `searches`: on a GPU with nothing computed again that a product reads, where that fits; else at a low level of
/// recompute that fits, which is written into `options`, or, where none is found, at the
/// level that needs least; else at the level that `options` ask for. Levels are tried in an order such that more room
/// never means a higher level, even where a higher level needs more.
mlir::OwningOpRef<mlir::ModuleOp> planWithinMemory(mlir::ModuleOp module, int64_t room, bool searches,
                                                   CompileOptions &options, const DiagnosticCollector &diagnostics);

/// Notes in `plan` what a planned module computes again. Throws ds::Error for a level that was asked for and that the
/// model does not have.
void noteRecompute(mlir::ModuleOp module, const config::Recompute &asked, plan::proto::Plan &plan);

} // namespace ds::driver
