//===- KernelSelection.h - which kernel runs an op, on which operands -------===//
#pragma once

#include "core/DType.h"
#include "dialects/Plan/Plan.h"
#include "dialects/Train/Train.h"
#include "kernels/KernelTable.h"

#include "llvm/ADT/SmallVector.h"

#include <string>

namespace ds {

/// An operand of a kernel: a tensor of the IR, or the memory of a variable.
struct KernelOperand {
  mlir::Value value;         // read, or defined by the op; null for a variable
  mlir::StringAttr variable; // null for a value
  mlir::RankedTensorType type;
  plan::Access access;
};

/// A call of a kernel of kernels/Kernels.inc, without its workspace.
struct KernelCall {
  std::string kernel;
  llvm::SmallVector<KernelOperand> operands;
  llvm::SmallVector<mlir::NamedAttribute> attributes; // i64, f64, strings, i64 and f64 arrays

  void read(mlir::Value value);
  void write(mlir::Value value);
  void variable(mlir::StringAttr name, mlir::RankedTensorType type, plan::Access access);

  /// The call as kernels see it.
  kernels::Invocation invocation() const;
};

/// The call of a command as kernels see it, with its workspace.
kernels::Invocation invocationOf(plan::KernelOp kernel);

/// What of a machine and a configuration decides calls.
struct KernelTarget {
  int64_t workers = 1; ///< compute workers of a rank that products are cut for
  kernels::Device device = kernels::Device::Cpu;
  bool tf32 = false; ///< on CUDA, float32 factors of products may be rounded
};

/// The call that computes `op`, or a failure after a diagnostic. `symbols` finds the variables that it names.
llvm::FailureOr<KernelCall> selectKernel(mlir::Operation *op, const mlir::SymbolTable &symbols,
                                         const KernelTarget &target);

/// Elementwise ops and fused bodies as a program (kernels/ElementwiseProgram.h); scalar constants become
/// part of it.
llvm::FailureOr<KernelCall> selectElementwise(mlir::Operation *op);

/// variable += value.
KernelCall selectAccumulate(train::AccumulateOp op);
/// variable = momentum * variable + (1 - momentum) * correction * value.
KernelCall selectUpdateAverage(train::UpdateAverageOp op);
/// A copy of a tensor into another place.
KernelCall selectCopy(mlir::Value value);
/// Whether a command does nothing else.
bool isCopy(plan::KernelOp kernel);

/// The element type of a tensor as kernels know it.
DType dtypeOf(mlir::Type type);

/// The value of every element of a constant, if `value` is one and they are equal.
std::optional<double> splatConstant(mlir::Value value);

} // namespace ds
