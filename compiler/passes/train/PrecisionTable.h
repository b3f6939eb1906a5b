//===- PrecisionTable.h - what of an op has 16 bits, what stays f32 --------===//
#pragma once

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

#include <optional>

namespace ds {

/// How one operand of an op is computed with, once a parameter reaches the op.
enum class OperandPrecision : char {
  Low = 'L',  ///< bf16 or f16
  Full = 'F', ///< f32
  Any = '.',  ///< as it comes
};

/// What else there is to know of an op.
enum class OpKind {
  Plain,
  Elementwise, ///< its result is rounded, unless the next elementwise op is all that reads it
  Movement,    ///< computes nothing: it keeps the type that its operands have
  Sum,         ///< of many elements; it stays f32
};

/// One op of the train dialect in a forward pass. Arithmetic inside of an op is f32 and what comes out is rounded once.
struct OpPrecision {
  llvm::StringRef op;       ///< without "train."
  llvm::StringRef operands; ///< a letter each; the last stands for all that follow
  OpKind kind = OpKind::Plain;

  OperandPrecision operand(unsigned index) const {
    return OperandPrecision(operands[std::min<size_t>(index, operands.size() - 1)]);
  }
};

llvm::ArrayRef<OpPrecision> precisionTable();

/// The row of an op, or null: then it cannot take 16 bits.
const OpPrecision *precisionOf(llvm::StringRef op);

} // namespace ds
