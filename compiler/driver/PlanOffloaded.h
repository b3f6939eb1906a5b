//===- PlanOffloaded.h - what leaves device memory, as the memory asks for it ---===//
#pragma once

#include "compiler/driver/Diagnostics.h"
#include "compiler/passes/Passes.h"
#include "runtime/plan/plan.pb.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

#include <cstdint>
#include <vector>

namespace ds::driver {

/// Plans `module`, which is differentiated, for at most `room` bytes of device memory on every rank, with the first of
/// `choices` of what leaves device memory whose plan fits, or the last; writes into `options` what it has chosen. With
/// the first, nothing is computed again to make it fit: others may cost less. Where a last rule takes all activations,
/// as few of them leave as are found to do.
/// `searches`: what is computed again is chosen, too, else it is as `options` say. Where compute then waits for
/// transfers over a link of `machine`, plans in which it waits for none and computes more again are made beside that
/// one, and of all the one is taken whose step is shortest by the clock of reports.
/// The module stays as it is but for `linksAttribute`, which it loses where all leaves that is to.
mlir::OwningOpRef<mlir::ModuleOp> planOffloaded(mlir::ModuleOp module, int64_t room, bool searches,
                                                const std::vector<OffloadOptions> &choices,
                                                const plan::proto::Machine &machine, CompileOptions &options,
                                                const DiagnosticCollector &diagnostics);

} // namespace ds::driver
