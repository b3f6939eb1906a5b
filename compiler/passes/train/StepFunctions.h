//===- StepFunctions.h - what the passes that make a training step share ----===//
#pragma once

#include "dialects/Train/Train.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace ds {

/// The module's @forward, of one block, which returns a scalar loss; or null after an error. No symbol has a name that
/// the step needs for itself.
mlir::func::FuncOp findForward(mlir::SymbolTable &symbols);

/// That every function is one block of train ops; reports what is not.
llvm::LogicalResult verifyStraightLine(mlir::ModuleOp module);

/// The metric `loss`, of the type of what `forward` returns.
void makeLossMetric(mlir::func::FuncOp forward, mlir::SymbolTable &symbols);

/// Replaces the return of the loss, and with it the terminator, by adding it into its metric.
void accumulateLoss(mlir::func::FuncOp function);

/// Erases what nothing reads.
void eraseDead(mlir::func::FuncOp function);

/// @evaluate: @forward without dropout and without what it stores.
void makeEvaluate(mlir::func::FuncOp forward, mlir::SymbolTable &symbols);

/// Ops that follow are named `name`.
void setName(mlir::ImplicitLocOpBuilder &builder, llvm::StringRef name);

/// The global norm of the gradients, variables, in their order.
mlir::Value buildGradientNorm(mlir::ImplicitLocOpBuilder &builder, llvm::ArrayRef<train::VariableOp> gradients);

/// A metric of this name that holds `value`.
void storeMetric(mlir::ImplicitLocOpBuilder &builder, mlir::SymbolTable &symbols, llvm::StringRef name,
                 mlir::Value value);

} // namespace ds
