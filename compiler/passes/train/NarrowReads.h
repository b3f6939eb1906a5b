//===- NarrowReads.h - reads of variables that have become narrower ------------===//
#pragma once

#include "dialects/Train/Train.h"

namespace ds {

/// Whether `op` only moves elements of its first operand, its one float.
bool onlyMoves(mlir::Operation *op);

/// Reads a variable, f32 before, in its new type: who rounded to that reads it as it is, also through ops that only
/// move elements; who computes in f32 reads it widened.
void narrowRead(train::ReadOp read, mlir::FloatType low);

} // namespace ds
