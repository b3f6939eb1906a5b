//===- NarrowFloat.h - float16 and bfloat16 as numbers ---------------------------===//
#pragma once

#include "core/DType.h"

#include "llvm/ADT/APFloat.h"

namespace ds::import {

inline const llvm::fltSemantics &semanticsOf(DType dtype) {
  switch (dtype) {
  case DType::F16:
    return llvm::APFloat::IEEEhalf();
  case DType::BF16:
    return llvm::APFloat::BFloat();
  case DType::F64:
    return llvm::APFloat::IEEEdouble();
  default:
    return llvm::APFloat::IEEEsingle();
  }
}

/// The bits of a float of one type as the nearest of another, ties to even.
inline uint64_t convertBits(uint64_t bits, DType from, DType to) {
  llvm::APFloat value(semanticsOf(from), llvm::APInt(unsigned(byteSize(from)) * 8, bits));
  bool losesInfo = false;
  value.convert(semanticsOf(to), llvm::APFloat::rmNearestTiesToEven, &losesInfo);
  return value.bitcastToAPInt().getZExtValue();
}

} // namespace ds::import
