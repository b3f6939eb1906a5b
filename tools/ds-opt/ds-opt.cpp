//===- ds-opt.cpp - inspects and compiles ---------------------------------===//
//
// `ds-opt COMMAND ...` for the commands of Commands.cpp; anything else is mlir-opt with our dialects, passes and
// pipelines.
//
//===----------------------------------------------------------------------===//
#include "compiler/passes/Passes.h"
#include "dialects/Dist/Dist.h"
#include "dialects/Plan/Plan.h"
#include "dialects/Train/Train.h"
#include "tools/ds-opt/Commands.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "mlir/Transforms/Passes.h"

#include "llvm/Support/ErrorHandling.h"

#include <cstdlib>
#include <new>
#include <string_view>
#include <unistd.h>

/// The end of the process, since MLIR and LLVM are built without exceptions: one that passes through their frames would
/// leave them as they stood. What an AtomicFile was about to write is not there; a file that is mapped stays as it is.
[[noreturn]] static void endWithoutMemory() {
  constexpr std::string_view sentence = "error: there is not enough memory; give ds-opt more, or a smaller model\n";
  (void)!::write(STDERR_FILENO, sentence.data(), sentence.size());
  std::_Exit(1);
}

int main(int argc, char **argv) {
  std::set_new_handler(endWithoutMemory);
  llvm::install_bad_alloc_error_handler([](void *, const char *, bool) { endWithoutMemory(); }); // LLVM's own malloc
  if (ds::tool::isCommand(argc, argv))
    return ds::tool::runCommand(argc, argv);
  ds::registerPassesAndPipelines();
  mlir::registerTransformsPasses();
  mlir::DialectRegistry registry;
  registry.insert<mlir::func::FuncDialect, ds::train::TrainDialect, ds::dist::DistDialect, ds::plan::PlanDialect>();
  return mlir::asMainReturnCode(mlir::MlirOptMain(
      argc, argv, "ds-opt: any pass by hand (for the commands import, compile, report ... see ds-opt --commands)\n",
      registry));
}
