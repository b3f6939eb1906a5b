//===- RunPipeline.h - run a pipeline of passes ---------------------------===//
#pragma once

#include "compiler/driver/Diagnostics.h"
#include "compiler/passes/Passes.h"

#include "mlir/IR/BuiltinOps.h"

namespace ds::driver {

/// Runs what `build` puts together; throws ds::Error where a pass fails.
void runPipeline(mlir::ModuleOp module, const char *phase, void (*build)(mlir::OpPassManager &, const CompileOptions &),
                 const CompileOptions &options, const DiagnosticCollector &diagnostics);

/// The same without a look at what becomes of the module: for trials, of which no plan comes.
void tryPipeline(mlir::ModuleOp module, const char *phase, void (*build)(mlir::OpPassManager &, const CompileOptions &),
                 const CompileOptions &options, const DiagnosticCollector &diagnostics);

} // namespace ds::driver
