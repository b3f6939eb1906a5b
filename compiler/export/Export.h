//===- Export.h - the plan dialect becomes plan.proto ---------------------===//
#pragma once

#include "mlir/IR/BuiltinOps.h"

#include "runtime/plan/plan.pb.h"

#include <string>

namespace ds::exporting {

/// What a plan says that the IR does not hold.
struct ExportContext {
  /// Folder in which the plan will lie; paths of weight files are written relative to it.
  std::string planFolder;
};

/// Copies a module that ds-verify-plan-form accepts into `plan`, field by field: world, weight files (their sizes and
/// checksums are read from disk), variables, inputs, reference program, roles. Decides nothing. Fails after a
/// diagnostic.
llvm::LogicalResult exportPlan(mlir::ModuleOp module, const ExportContext &context, plan::proto::Plan &plan);

/// Of a module that ds-record-reference has seen: names of variables, and the reference program. No file is read. Fails
/// after a diagnostic.
llvm::LogicalResult exportProgram(mlir::ModuleOp module, plan::proto::Plan &plan);

/// Of such a module what runs on each rank, for clocks: no file is read, and what commands have to do with variables is
/// left out. Fails after a diagnostic.
llvm::LogicalResult exportRoles(mlir::ModuleOp module, plan::proto::Plan &plan);

} // namespace ds::exporting
