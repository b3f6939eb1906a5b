//===- NarrowUses.h - tensors that are only used in a smaller type ----------===//
#pragma once

#include "dialects/Train/Train.h"

namespace ds {

/// Whether a cast rounds: to a smaller type of float.
inline bool isNarrowing(train::CastOp cast) {
  const mlir::Type from = mlir::getElementTypeOrSelf(cast.getInput().getType()),
                   to = mlir::getElementTypeOrSelf(cast.getType());
  return mlir::isa<mlir::FloatType>(from) && mlir::isa<mlir::FloatType>(to) &&
         to.getIntOrFloatBitWidth() < from.getIntOrFloatBitWidth();
}

/// The smaller type of float that all users of a float tensor cast it to; null where there is none, or no user.
inline mlir::Type narrowTypeOf(mlir::Value tensor) {
  mlir::Type common;
  for (mlir::Operation *user : tensor.getUsers()) {
    auto cast = mlir::dyn_cast<train::CastOp>(user);
    const mlir::Type to = cast ? mlir::getElementTypeOrSelf(cast.getType()) : mlir::Type();
    if (!cast || !isNarrowing(cast) || (common && common != to))
      return {};
    common = to;
  }
  return common;
}

} // namespace ds
