//===- LowerPrograms.h - programs of calls ------------------------------------===//
#pragma once

#include "compiler/passes/plan/CommandWriter.h"
#include "compiler/passes/plan/RoleBuffers.h"

namespace ds {

/// Lowers the programs of a role whose fragments are routines already.
class LowerPrograms {
public:
  /// Programs and routines go to the end of `role`; `buffers` is where buffers are made.
  LowerPrograms(mlir::SymbolTable &symbols, plan::RoleOp role, mlir::OpBuilder &buffers, RoleBuffers &storage,
                CommandWriter &writer)
      : symbols_(symbols), plan_(role), buffers_(buffers), storage_(storage), writer_(writer) {}

  /// The calls, behind a routine that zeroes what they accumulate into, and the metrics that they write.
  void lower(dist::ProgramOp program);

private:
  bool lowerBegin(dist::ProgramOp program, llvm::StringRef name);
  bool isPadded(dist::BucketOp bucket) const;
  llvm::SmallVector<mlir::StringAttr> accumulatedBy(mlir::Operation *op) const;

  mlir::SymbolTable &symbols_;
  plan::RoleOp plan_;
  mlir::OpBuilder &buffers_;
  RoleBuffers &storage_;
  CommandWriter &writer_;
};

} // namespace ds
