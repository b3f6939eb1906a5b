//===- Routines.h - the routines of a role by name ----------------------------===//
#pragma once

#include "dialects/Plan/Plan.h"

#include "llvm/ADT/DenseMap.h"

namespace ds {

/// Where many calls are looked up: each walk to a symbol passes all buffers of the role.
class Routines {
public:
  explicit Routines(plan::RoleOp role) {
    for (auto routine : role.getOps<plan::RoutineOp>())
      byName_[routine.getSymNameAttr()] = routine;
  }
  plan::RoutineOp named(mlir::StringAttr name) const { return byName_.lookup(name); }
  plan::RoutineOp of(plan::CallOp call) const { return named(call.getRoutineAttr().getAttr()); }

private:
  llvm::DenseMap<mlir::StringAttr, plan::RoutineOp> byName_; // looked up
};

} // namespace ds
