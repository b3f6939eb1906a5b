//===- EvaluationForm.h - a forward pass as it is evaluated ---------------===//
#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace ds {

/// Takes out of a copy of the forward pass what belongs to training alone: dropout goes, and where a batch norm has
/// running statistics (train.update_average) it normalises by them instead of its batch, and updates them no more.
void makeEvaluationForm(mlir::func::FuncOp function);

/// Takes of each choice by mode what training takes; returns whether there was one.
bool makeTrainingForm(mlir::func::FuncOp function);

} // namespace ds
