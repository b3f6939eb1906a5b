//===- StepStart.h - what stands between the calls of a step --------------===//
#pragma once

#include "dialects/Plan/Plan.h"

#include "llvm/ADT/DenseMap.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace ds {

/// The routine that a step of a role calls first; made where there is none yet. Its call is of the step's last
/// micro-batch: its events say at once that it has run for all.
plan::RoutineOp stepStart(plan::RoleOp role);

/// A routine that the step calls in front of one of its calls, `start_` and that one's name; made where there is none
/// yet. Its call is of the last micro-batch, too.
plan::RoutineOp startBefore(plan::CallOp call);

/// How many calls of a routine a program has.
int64_t callsIn(plan::ProgramOp program, mlir::Attribute routine);

/// The forwards and backwards of a step, where each is called for all of several micro-batches before the next is, as
/// the schedule accumulate-by-layer has them. In front of each stands a start: a routine that the step calls once,
/// whose events are of the last micro-batch, as those of stepStart are, so that they say at once that it has run for
/// all.
class LayerGroups {
public:
  explicit LayerGroups(plan::RoleOp role);

  /// None, unless every forward and backward of the step is such a group, and there are several of each.
  bool empty() const { return routines_.empty(); }
  llvm::ArrayRef<plan::RoutineOp> routines() const { return routines_; }
  std::optional<size_t> find(mlir::Operation *routine) const;

  /// The start in front of a group, or behind the last of them; made where there is none yet.
  plan::RoutineOp startOf(size_t group);
  /// The start that a step calls before this one; null for the first and for what is no start.
  plan::RoutineOp startBefore(plan::RoutineOp start);
  /// Where what a group needs is asked for: the start of the group before it, so that it comes beside that one's calls.
  plan::RoutineOp startAheadOf(size_t group) { return startOf(group == 0 ? 0 : group - 1); }

private:
  std::string nameOf(size_t group);

  plan::RoleOp role_;
  plan::ProgramOp step_;
  std::vector<plan::RoutineOp> routines_; // in the order of their calls
};

} // namespace ds
