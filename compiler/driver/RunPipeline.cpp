//===- RunPipeline.cpp - run a pipeline of passes -------------------------===//
#include "compiler/driver/RunPipeline.h"

#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassManager.h"

using namespace mlir;
using namespace ds;

void ds::driver::runPipeline(ModuleOp module, const char *phase, void (*build)(OpPassManager &, const CompileOptions &),
                             const CompileOptions &options, const DiagnosticCollector &diagnostics) {
  PassManager manager(module.getContext());
#ifdef NDEBUG
  manager.enableVerifier(false); // after each pass; a budget of memory has all of them run again and again
#endif
  build(manager, options);
  if (failed(manager.run(module)))
    diagnostics.raise(phase);
  if (failed(verify(module)))
    diagnostics.raiseFault(phase);
}
