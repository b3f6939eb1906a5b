//===- SpeculativeUpdates.h - updates that do not wait for the norm --------===//
#pragma once

#include "compiler/passes/offload/OperandCopies.h"
#include "dialects/Plan/Plan.h"

#include "mlir/IR/Builders.h"

#include "llvm/ADT/MapVector.h"

#include <cstdint>
#include <utility>

namespace ds {

/// Updates of a role whose gradients are clipped by their norm, made before it is known: as if the factor by which all
/// are multiplied were 1, which it mostly is. The tail of the step makes them again where it is not.
///
///   adamw(w, g, m, factor)    becomes    keep = w; new = keep; adamw(new, g, m, 1); w = new
///                             and in the tail, unless factor is 1,
///                                        adamw(keep, g, m, factor); w = keep
///
/// For moments in files, which keep their old values beside the new ones (ds-keep-old-state). Cf. Lian et al.,
/// SuperOffload, ASPLOS 2026 (speculation, then validation).
class SpeculativeUpdates {
public:
  /// `update`: the routine of the step's updates.
  SpeculativeUpdates(plan::RoleOp role, plan::RoutineOp update)
      : role_(role), update_(update), members_(*role.getOps<plan::RoutineOp>().begin()) {}

  /// The update takes 1 instead of its factor, so that it need not wait for it. False, and nothing is changed, where it
  /// has no factor that the step computes, where its factor is not that of the others, or where another command of the
  /// update needs what it writes.
  bool guess(plan::CommandOpInterface update);
  /// It waits for its factor after all.
  void takeBack(plan::CommandOpInterface update);
  /// The update, moved to another routine by now, keeps what the tail needs. Copies to the host may stand in front of
  /// `ahead`, of the same routine; scalars are copied in front of `scalars`.
  void keep(plan::CommandOpInterface update, mlir::Operation *ahead, mlir::Operation *scalars);

private:
  mlir::Value keepParameter(plan::CommandOpInterface update, mlir::Operation *ahead);
  void makeAgain(plan::CommandOpInterface update, mlir::Value kept, const TensorPlace &place);
  mlir::Value makeCopy(plan::CommandOpInterface update, plan::Scope scope);
  mlir::Value hostScalar(plan::CommandOpInterface update, unsigned index, mlir::Operation *before);
  mlir::Value one();
  plan::RoutineOp tail();

  plan::RoleOp role_;
  plan::RoutineOp update_, tail_; // null until the first one
  mlir::OpBuilder members_;       // where buffers go
  mlir::Value factor_, one_;
  llvm::MapVector<std::pair<mlir::Value, int64_t>, mlir::Value> scalars_; // on the host, by buffer and offset
};

} // namespace ds
