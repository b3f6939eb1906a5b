//===- Export.cpp - the plan dialect becomes plan.proto -------------------===//
#include "compiler/export/Exporter.h"

using namespace mlir;
using namespace ds;
using namespace ds::exporting;

void Exporter::exportWorld() {
  for (auto mesh : module_.getOps<dist::MeshOp>())
    for (auto [axis, size] : llvm::zip(mesh.getAxes().getAsValueRange<StringAttr>(), mesh.getSizes())) {
      plan::proto::Axis &message = *plan_.mutable_world()->add_axes();
      message.set_name(axis.str());
      message.set_size(size);
    }
}

LogicalResult Exporter::run() {
  exportWorld();
  if (failed(exportVariables()))
    return failure();
  exportInputs();
  if (failed(exportReference()))
    return failure();
  for (auto role : module_.getOps<plan::RoleOp>())
    if (failed(exportRole(role)))
      return failure();
  return success();
}

LogicalResult ds::exporting::exportPlan(ModuleOp module, const ExportContext &context, plan::proto::Plan &plan) {
  return Exporter(module, context, plan).run();
}
