//===- NarrowUses.h - tensors that are only used in a smaller type ----------===//
#pragma once

#include "dialects/Train/Train.h"

namespace ds {

/// Whether an op rounds: casts to a smaller type of float.
inline bool isNarrowing(mlir::Operation *op) {
  auto cast = mlir::dyn_cast_if_present<train::CastOp>(op);
  if (!cast)
    return false;
  const mlir::Type from = mlir::getElementTypeOrSelf(cast.getInput().getType()),
                   to = mlir::getElementTypeOrSelf(cast.getType());
  return mlir::isa<mlir::FloatType>(from) && mlir::isa<mlir::FloatType>(to) &&
         to.getIntOrFloatBitWidth() < from.getIntOrFloatBitWidth();
}

/// The smaller type of float that all users of a float tensor cast it to; null where there is none, or no user.
inline mlir::Type narrowTypeOf(mlir::Value tensor) {
  mlir::Type common;
  for (mlir::Operation *user : tensor.getUsers()) {
    const mlir::Type to = isNarrowing(user) ? mlir::getElementTypeOrSelf(user->getResult(0).getType()) : mlir::Type();
    if (!to || (common && common != to))
      return {};
    common = to;
  }
  return common;
}

} // namespace ds
