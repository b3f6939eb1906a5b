//===- NarrowUses.h - tensors that are only used in a smaller type ----------===//
#pragma once

#include "dialects/Train/Train.h"

namespace ds {

/// The smaller type of float that all users of a float tensor cast it to; null where there is none, or no user.
inline mlir::Type narrowTypeOf(mlir::Value tensor) {
  mlir::Type common;
  for (mlir::Operation *user : tensor.getUsers()) {
    auto cast = mlir::dyn_cast<train::CastOp>(user);
    if (!cast)
      return {};
    const mlir::Type from = mlir::getElementTypeOrSelf(tensor.getType()),
                     to = mlir::getElementTypeOrSelf(cast.getType());
    const bool isNarrower = mlir::isa<mlir::FloatType>(from) && mlir::isa<mlir::FloatType>(to) &&
                            to.getIntOrFloatBitWidth() < from.getIntOrFloatBitWidth();
    if (!isNarrower || (common && common != to))
      return {};
    common = to;
  }
  return common;
}

} // namespace ds
