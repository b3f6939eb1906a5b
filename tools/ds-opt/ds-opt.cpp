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

int main(int argc, char **argv) {
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
