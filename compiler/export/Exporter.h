//===- Exporter.h - one export in progress --------------------------------===//
#pragma once

#include "compiler/export/Export.h"
#include "dialects/Dist/Dist.h"
#include "dialects/Dist/Mesh.h"
#include "dialects/Plan/Plan.h"
#include "dialects/Train/Train.h"

#include "llvm/ADT/StringMap.h"

namespace ds::exporting {

/// Numbers things in the order of the IR and copies them; one method per part of plan.proto.
class Exporter {
public:
  Exporter(mlir::ModuleOp module, const ExportContext &context, plan::proto::Plan &plan)
      : module_(module), context_(context), plan_(plan) {}

  llvm::LogicalResult run();
  llvm::LogicalResult runRoles();
  llvm::LogicalResult runProgram();

private:
  void exportWorld();
  /// Says of an input or a variable that micro-batches make it another value on each rank. Nothing varies along an axis
  /// of size 1.
  template <typename Message> void exportVaries(Message &message) {
    for (int axis = 0; axis < plan_.world().axes_size(); ++axis)
      if (const plan::proto::Axis &one = plan_.world().axes(axis); one.name() == dist::dataAxis && one.size() > 1)
        addAxis(axis, *message.mutable_placement()).set_varies(true);
  }
  static plan::proto::AxisPlacement &addAxis(int axis, plan::proto::Placement &placement);
  void exportSharding(train::VariableOp variable, plan::proto::Variable &message);
  llvm::LogicalResult exportEachRole();
  void exportBuckets();
  void exportChannels();
  void exportCodes();
  void exportPipeline();
  llvm::LogicalResult exportVariables();
  llvm::LogicalResult exportSource(train::VariableOp variable, plan::proto::Source &message);
  llvm::FailureOr<unsigned> weightFile(train::VariableOp variable, llvm::StringRef path);
  void exportInputs();
  llvm::LogicalResult exportReference();
  void exportRunningStatistics();
  llvm::LogicalResult exportReferenceOp(mlir::Operation &op, llvm::StringRef function);
  llvm::LogicalResult exportRole(plan::RoleOp role);
  void exportBuffer(plan::BufferOp buffer, plan::proto::Buffer &message);
  llvm::LogicalResult exportCommand(mlir::Operation &op, plan::proto::Command &message);
  bool exportArgument(mlir::NamedAttribute attribute, plan::proto::Attribute &message);
  void exportCommandBase(plan::CommandOpInterface op, plan::proto::Command &message);
  void exportOperand(plan::CommandOpInterface op, unsigned index, plan::proto::Operand &message);
  /// That the host reads when commands have ended.
  void exportScalar(mlir::Value buffer, mlir::Type type, plan::proto::Operand &message);

  mlir::ModuleOp module_;
  const ExportContext &context_;
  plan::proto::Plan &plan_;
  // Looked up, never iterated.
  llvm::DenseMap<mlir::StringAttr, unsigned> variables_, inputs_;
  llvm::DenseMap<mlir::StringAttr, unsigned> buckets_, communicators_, channels_, codes_;
  llvm::DenseMap<mlir::StringAttr, unsigned> alongAxis_; // communicators with that axis alone
  llvm::StringMap<unsigned> files_;
  llvm::DenseMap<mlir::Value, unsigned> values_;        // of the reference program
  llvm::DenseMap<mlir::Operation *, unsigned> members_; // of the role: number among its kind
  mlir::SymbolTableCollection symbols_;
};

} // namespace ds::exporting
