//===- StepOrder.h - in which order a step runs its commands --------------===//
#pragma once

#include "dialects/Plan/Plan.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace ds {

/// A place in a step: behind an op of the routine of one of its calls, or at that one's begin.
struct StepPlace {
  size_t call = 0;
  mlir::Operation *op = nullptr; ///< null: at the begin

  static StepPlace start() { return {}; }
  static StepPlace end() { return {SIZE_MAX, nullptr}; }

  bool operator<(const StepPlace &other) const {
    if (call != other.call || !op || !other.op)
      return call != other.call ? call < other.call : !op && other.op;
    return op != other.op && op->isBeforeInBlock(other.op);
  }
};

/// Where the step of a role runs commands, while no call is added to it.
class StepOrder {
public:
  explicit StepOrder(plan::RoleOp role);

  /// Of the first call of a command's routine, and of the last. Behind all of the step, and before it, where none is.
  StepPlace firstOf(mlir::Operation *command) const;
  StepPlace lastOf(mlir::Operation *command) const;
  /// The begin of a routine that the step calls.
  StepPlace beginOf(plan::RoutineOp routine) const;

  plan::RoutineOp routineOf(const StepPlace &place) const { return calls_[place.call]; }
  /// Whether no program calls it again.
  bool isCalledOnce(plan::RoutineOp routine) const;
  /// The first place from this one on that lies in a routine that is called once; the end where there is none.
  StepPlace calledOnceFrom(const StepPlace &place) const;

private:
  plan::RoleOp role_;
  std::vector<plan::RoutineOp> calls_;
};

/// Erases a routine, and its calls from all programs.
void eraseWithCalls(plan::RoutineOp routine);

} // namespace ds
