//===- RunPipeline.cpp - run a pipeline of passes -------------------------===//
#include "compiler/driver/RunPipeline.h"

#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassManager.h"

using namespace mlir;
using namespace ds;

static void run(ModuleOp module, const char *phase, void (*build)(OpPassManager &, const CompileOptions &),
                const CompileOptions &options, const driver::DiagnosticCollector &diagnostics, bool verifies) {
  PassManager manager(module.getContext());
  manager.enableVerifier(verifies); // after each pass
  build(manager, options);
  if (failed(manager.run(module)))
    diagnostics.raise(phase);
}

void ds::driver::runPipeline(ModuleOp module, const char *phase, void (*build)(OpPassManager &, const CompileOptions &),
                             const CompileOptions &options, const DiagnosticCollector &diagnostics) {
#ifdef NDEBUG
  constexpr bool verifies = false; // a budget of memory has all passes run again and again
#else
  constexpr bool verifies = true;
#endif
  run(module, phase, build, options, diagnostics, verifies);
  if (failed(verify(module)))
    diagnostics.raiseFault(phase);
}

void ds::driver::tryPipeline(ModuleOp module, const char *phase, void (*build)(OpPassManager &, const CompileOptions &),
                             const CompileOptions &options, const DiagnosticCollector &diagnostics) {
  run(module, phase, build, options, diagnostics, /*verifies=*/false);
}
